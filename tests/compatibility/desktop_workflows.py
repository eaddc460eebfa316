"""Pictures, films and browsers."""

from __future__ import annotations

from workflow import Workflow

PAGE = "echo '<!DOCTYPE html><title>it runs</title><h1>it runs</h1>' >page.html"
#: A browser whose own sandbox would need rights that a command does not have, and that calls nobody by itself.
CHROMIUM = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)

DESKTOP = (
    Workflow(
        "chromium --headless --screenshot",
        "desktop",
        (f'chromium {CHROMIUM} --user-data-dir="$TMPDIR/profile" --screenshot=page.png "file://$PWD/page.html"',),
        needs=("chromium",),
        before=PAGE,
        after="file page.png | grep -q PNG || head -c 4 page.png | grep -q PNG",
    ),
    Workflow(
        "chromium --headless, with its usual profile",
        "desktop",
        (f'chromium {CHROMIUM} --dump-dom "file://$PWD/page.html"',),
        needs=("chromium",),
        before=PAGE,
        says="<h1>it runs</h1>",
    ),
    Workflow(
        "playwright, driving chromium",
        "desktop",
        ("node it.js",),
        needs=("chromium", "node"),
        before=f"{PAGE} && cat >it.js <<'END'\n"
        "const { chromium } = require('playwright-core');\n"
        "(async () => {\n"
        "  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', chromiumSandbox: false,\n"
        "    args: ['--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });\n"
        "  const page = await browser.newPage();\n"
        "  await page.goto('file://' + process.cwd() + '/page.html');\n"
        "  console.log(await page.textContent('h1'));\n"
        "  await page.screenshot({ path: 'page.png' });\n"
        "  await browser.close();\n"
        "})();\nEND",
        says="^it runs$",
        after="test -s page.png",
    ),
    Workflow(
        "ffmpeg",
        "desktop",
        (
            "ffmpeg -v error -f lavfi -i testsrc=duration=1:size=64x64:rate=5 it.mp4 && ffprobe -v error -show_entries format=duration it.mp4",
        ),
        needs=("ffmpeg",),
        says="duration=1",
    ),
    Workflow(
        "imagemagick",
        "desktop",
        ("convert-im6.q16 -size 64x64 xc:red -resize 50% it.png && identify-im6.q16 it.png",),
        needs=("convert-im6.q16",),
        says="PNG 32x32",
    ),
)
