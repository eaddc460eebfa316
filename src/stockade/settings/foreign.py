"""Settings of Claude Code that stand in the same objects as ours.

Its files are read so that a policy which somebody already has is enforced as it stands. What in
them is not ours is not an error, but what sounds like a wall is never passed over in silence.
Source of truth: the settings page of Claude Code's documentation.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.enumeration import Enum


class Standing(Enum):
    """Whose a key in a foreign file is."""

    OURS = "one of our settings, misspelt or misplaced"
    NOT_ENFORCED = "theirs, and it may be taken for a wall"
    HARMLESS = "theirs, and no concern of ours"


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


def standing(name: str, section: str) -> Standing:
    """Return whose an unknown key is, in a section of a foreign file ("" for its top level)."""
    from stockade.settings.unknown_key import is_misplaced, is_misspelling

    full = f"{section}.{name}"
    if not section:  # nearly everything there is theirs, so only "permisions" and the like are suspect
        return Standing.OURS if is_misspelling(name, section) else Standing.HARMLESS
    if full not in KNOWN and (is_misspelling(name, section) or is_misplaced(name)):
        return Standing.OURS
    return Standing.HARMLESS if full in SILENT else Standing.NOT_ENFORCED
