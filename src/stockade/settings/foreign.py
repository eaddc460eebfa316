"""Settings of Claude Code that stand in the same objects as ours.

Its files are read so that a policy which somebody already has is enforced as it stands. What in
them is not ours is not an error, but what sounds like a wall is never passed over in silence.
Source of truth: the settings page of Claude Code's documentation.
"""

from __future__ import annotations

from typing import Final

#: They steer prompts inside Claude Code and promise nothing about walls.
SILENT: Final = frozenset(
    {
        "permissions.defaultMode",
        "permissions.disableAutoMode",
        "permissions.disableBypassPermissionsMode",
        "permissions.skipDangerousModePermissionPrompt",
    }
)

#: Its own names, however much they look like one of ours.
KNOWN: Final = SILENT | {
    "permissions.additionalDirectories",
    "permissions.allowManagedPermissionRulesOnly",
    "sandbox.allowAppleEvents",
    "sandbox.bwrapPath",
    "sandbox.credentials",
    "sandbox.enableWeakerNetworkIsolation",
    "sandbox.enabledPlatforms",
    "sandbox.filesystem.allowManagedReadPathsOnly",
    "sandbox.filesystem.disabled",
    "sandbox.network.allowMachLookup",
    "sandbox.network.allowManagedDomainsOnly",
    "sandbox.network.deniedDomainReasons",
    "sandbox.network.strictAllowlist",
    "sandbox.network.tlsTerminate",
    "sandbox.seccomp",
    "sandbox.socatPath",
}
