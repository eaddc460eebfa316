"""Servers and databases that belong to a project."""

from __future__ import annotations

from workflow import USER, Workflow, until

SESSION = """
import asyncio
import stockade
async def main():
    async with stockade.Sandbox(stockade.load_policy()) as sandbox:
        server = asyncio.create_task(sandbox.run("python3 -m http.server --bind 127.0.0.1 8123"))
        for _ in range(100):
            done = await sandbox.run("curl -sS http://127.0.0.1:8123/file")
            if done.exit_code == 0:
                break
            await asyncio.sleep(0.1)
        print(done.stdout.decode(), done.stderr.decode())
        server.cancel()
asyncio.run(main())
"""


def _served(server: str, page: str) -> str:
    """Return a line that starts a server, fetches a page of it and ends it."""
    fetch = f"curl -sf http://127.0.0.1:{page}"
    return f"{server} >log 2>&1 & {until(fetch)}; {fetch}; kill $!; wait || true"


def _postgres(options: str, queries: str) -> str:
    """Return a line that starts a server with a new database, asks it and ends it."""
    return (
        "export LC_ALL=C; initdb -D data -A trust -U postgres >log && "
        f'pg_ctl -D data -o "{options}" -l log -w start >/dev/null || {{ tail log; exit 1; }}; '
        f"{queries}; pg_ctl -D data -w stop >/dev/null"
    )


SERVERS = (
    Workflow(
        "redis-server and redis-cli, over TCP and a Unix socket",
        "servers",
        (
            (
                "redis-server --port 7001 --unixsocket ./redis.sock --save '' --daemonize no >log & "
                f"{until('redis-cli -p 7001 ping')}; redis-cli -p 7001 set name ada; redis-cli -s ./redis.sock get name; redis-cli -p 7001 shutdown nosave || true; wait"
            ),
        ),
        needs=("redis-server", "redis-cli"),
        says="^ada$",
    ),
    Workflow(
        "postgres: initdb, start, psql over a Unix socket and TCP",
        "servers",
        (
            _postgres(
                "-k $PWD/sockets -h 127.0.0.1 -p 7002",
                "psql -h $PWD/sockets -p 7002 -U postgres -Atqc 'create table t(x int); insert into t values (42); select x from t'; "
                "psql -h 127.0.0.1 -p 7002 -U postgres -Atqc 'select x+1 from t'",
            ),
        ),
        needs=("initdb", "pg_ctl", "psql"),
        users=(USER,),
        before="mkdir sockets",
        says="(?s)^42$.*^43$",
    ),
    Workflow(
        "postgres with its usual socket in /tmp",
        "servers",
        (_postgres("-k /tmp -h ''", "psql -h /tmp -U postgres -Atqc 'select 42'"),),
        needs=("initdb", "pg_ctl", "psql"),
        users=(USER,),
        says="^42$",
    ),
    Workflow(
        "sqlite3",
        "servers",
        (
            "sqlite3 it.db 'pragma journal_mode=wal; create table t(x); insert into t values(42)'",
            "sqlite3 it.db 'select x from t'",
        ),
        needs=("sqlite3",),
        says="^42$",
    ),
    Workflow(
        "python -m http.server, used by the same command",
        "servers",
        (_served("python3 -m http.server --bind 127.0.0.1 7003", "7003/file"),),
        needs=("curl",),
        before="echo served >file",
        says="^served$",
    ),
    Workflow(
        "python -m http.server in one command of a session, used by the next",
        "servers",
        ("$ python session.py",),
        before=f"echo served >file && cat >session.py <<'END'\n{SESSION}\nEND",
        says="^served$",
    ),
    Workflow(
        "a server in one run, reached from the host",
        "servers",
        (
            "$ "
            + _served(
                "stockade run --publish {port}:7004 -- python3 -m http.server --bind 127.0.0.1 7004", "{port}/file"
            ),
        ),
        setting="`--publish HOST:SANDBOX`",
        before="echo served >file",
        says="^served$",
    ),
    Workflow(
        "node's http server and fetch",
        "servers",
        (
            (
                "node -e \"require('http').createServer((q,s)=>s.end('served')).listen(7005,async()=>{console.log(await (await "
                "fetch('http://127.0.0.1:7005')).text());process.exit()})\""
            ),
        ),
        needs=("node",),
        says="^served$",
    ),
    Workflow(
        "php -S",
        "servers",
        (_served("php -S 127.0.0.1:7006", "7006/it.php"),),
        needs=("php",),
        before="echo '<?php echo \"served\\n\";' >it.php",
        says="^served$",
    ),
    Workflow(
        "tmux",
        "servers",
        (
            (
                "tmux new-session -d -s one cat && tmux send-keys -t one hello Enter && "
                f"{until('tmux capture-pane -pt one | grep hello')}; tmux capture-pane -pt one; tmux kill-server"
            ),
        ),
        needs=("tmux",),
        says="hello",
    ),
    Workflow(
        "docker, by the socket of its daemon",
        "servers",
        ("curl -sS --unix-socket {home}/docker.sock http://docker/version",),
        before="python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' {home}/docker.sock",
        homes=("docker.sock",),
        refused="the daemon obeys every program that reaches its socket, and starts containers outside the walls; "
        "run `docker` yourself, put it into `excludedCommands`, or name the socket with `--allow-unix-socket`",
        says="[Pp]ermission denied|refused|Couldn't connect|Could not connect",
    ),
)
