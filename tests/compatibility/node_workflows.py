"""What people do with Node and its package managers."""

from __future__ import annotations

from workflow import EMPTY, REPOSITORY, Workflow, until

USE = "node -e \"console.log(require('is-odd')(3))\""
VANILLA = "--template vanilla --no-interactive"
PAGE = "curl -sf http://localhost:7007/"

NODE = (
    Workflow(
        "npm init",
        "node",
        ("npm init -y", "npm pkg set scripts.hello='echo hello' && npm run -s hello"),
        needs=("npm",),
        says="^hello$",
    ),
    Workflow(
        "npm install, npm ci",
        "node",
        (f"npm init -y >/dev/null && npm install is-odd && {USE}", f"rm -r node_modules && npm ci && {USE}"),
        needs=("npm",),
        reaches="REGISTRY",
        says="^true$",
        after="test -f package-lock.json && test -d node_modules/is-number",
    ),
    Workflow(
        "npm install from a warm cache",
        "node",
        ("npm init -y >/dev/null && npm install is-odd", f"rm -r node_modules && npm ci --offline && {USE}"),
        needs=("npm",),
        reaches="REGISTRY",
        says="^true$",
    ),
    Workflow(
        "npm create vite .",
        "node",
        (f"npm create --yes vite@latest . -- {VANILLA}",),
        needs=("npm",),
        reaches="REGISTRY",
        starts=(EMPTY,),
        after="test -f package.json && test -f index.html && test -f .gitignore",
    ),
    Workflow(
        "npm create vite app",
        "node",
        (f"npm create --yes vite@latest app -- {VANILLA}",),
        needs=("npm",),
        reaches="REGISTRY",
        after="test -f app/package.json && test -f app/index.html",
    ),
    Workflow(
        "npx, the second time from a warm cache",
        "node",
        (f"npx --yes create-vite@latest one {VANILLA}", f"npx --yes --offline create-vite@latest two {VANILLA}"),
        needs=("npx",),
        reaches="REGISTRY",
        after="test -f one/package.json && test -f two/package.json",
    ),
    Workflow(
        "vite build, vite's server",
        "node",
        ("vite build && cat dist/assets/*.js", f"vite --port 7007 >log 2>&1 & {until(PAGE)}; {PAGE}; kill $!"),
        needs=("vite", "curl"),
        before="echo '<script type=module src=/main.js></script>' >index.html && echo 'document.title = \"it runs\"' >main.js",
        says="(?s)it runs.*main.js",
        after="test -f dist/index.html",
    ),
    Workflow(
        "npm version",
        "node",
        ("npm init -y >/dev/null && git add . && git commit -qm package && npm version patch",),
        needs=("npm", "git"),
        starts=(REPOSITORY,),
        after="git rev-parse -q --verify v1.0.1",
    ),
    Workflow(
        "npm install -g",
        "node",
        ("npm install -g is-odd",),
        needs=("npm",),
        reaches="REGISTRY",
        refused="what is installed for the whole machine is started outside the walls; install into the project, use `npx`, "
        "or open a directory with `--allow-write` and name it with `--prefix`",
        says="ENOENT|EROFS|EACCES|[Rr]ead-only",
    ),
    Workflow(
        "pnpm",
        "node",
        (f"pnpm init && pnpm add is-odd && {USE}", f"rm -r node_modules && pnpm install --offline && {USE}"),
        needs=("pnpm",),
        reaches="REGISTRY",
        says="^true$",
        after="test -f pnpm-lock.yaml",
    ),
    Workflow(
        "yarn",
        "node",
        (f"yarn init -y && yarn add is-odd && {USE}", f"rm -r node_modules && yarn install --offline && {USE}"),
        needs=("yarn",),
        reaches="REGISTRY",
        says="^true$",
        after="test -f yarn.lock",
    ),
    Workflow(
        "husky",
        "node",
        ("npm init -y >/dev/null && npm install -D husky >/dev/null && npx husky && git config core.hooksPath",),
        needs=("npm", "git"),
        reaches="REGISTRY",
        allows=(".git/config", "./.husky/_"),
        starts=(REPOSITORY,),
        configures=("core.hookspath",),
        says=r"\.husky/_",
    ),
    Workflow(
        "node --test, worker threads, child processes",
        "node",
        (
            (
                "node --test && node -e \"const {Worker}=require('worker_threads');"
                "new Worker('require(\\'worker_threads\\').parentPort.postMessage(42)',{eval:true}).on('message',m=>console.log(m));"
                "console.log(require('child_process').execFileSync('echo',['child']).toString().trim())\""
            ),
        ),
        needs=("node",),
        before="printf \"require('node:test')('works', () => {})\\n\" >a.test.js",
        says=r"(?s)pass 1.*^42$|child",
    ),
    Workflow(
        "node's fs.cpSync and fs.rmSync of the whole project",
        "node",
        (
            (
                "node -e \"const fs=require('fs');fs.cpSync('.',process.env.TMPDIR+'/copy',{recursive:true});"
                "console.log(fs.readFileSync(process.env.TMPDIR+'/copy/file','utf8'));"
                "fs.rmSync(process.env.TMPDIR+'/copy',{recursive:true})\""
            ),
        ),
        needs=("node",),
        before="echo kept >file",
        says="^kept$",
    ),
)
