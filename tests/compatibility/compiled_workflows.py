"""What people do with compilers, build systems and debuggers."""

from __future__ import annotations

from workflow import EMPTY, Workflow

MAIN = "printf '#include <stdio.h>\\nint main(void) { puts(\"it runs\"); return 0; }\\n' >main.c"
JAVA = 'class Main { public static void main(String[] a) { System.out.println("it runs"); } }'
POM = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>a</groupId>'
    "<artifactId>it</artifactId><version>1</version><packaging>jar</packaging><properties>"
    "<maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>"
    "<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties></project>"
)
#: Java takes the home of the user database, whatever HOME says; for most people both are the same.
MAVENRC = "echo 'MAVEN_OPTS=\"$MAVEN_OPTS -Duser.home=$HOME\"' >{home}/.mavenrc"
MAVEN = MAVENRC + f" && mkdir -p src/main/java && echo '{JAVA}' >src/main/java/Main.java && echo '{POM}' >pom.xml"
SETTINGS = (
    "<settings><mirrors><mirror><id>loopback</id><mirrorOf>*</mirrorOf><url>http://{host}/maven</url>"
    "<blocked>false</blocked></mirror></mirrors></settings>"
)
#: Goals by plugin, at the versions that Debian has: those that Maven names by itself are only partly there.
PHASES = " ".join(
    f"org.apache.maven.plugins:maven-{plugin}-plugin:$(ls /usr/share/maven-repo/org/apache/maven/plugins/maven-{plugin}-plugin"
    f" | grep '^[0-9]' | sort -V | tail -1):{goal}"
    for plugin, goal in (("compiler", "compile"), ("jar", "jar"))
)

COMPILED = (
    Workflow(
        "gcc and make",
        "compiled",
        ("make -j2 && ./program", "make clean && make"),
        needs=("gcc", "make"),
        before=f"{MAIN} && printf 'program: main.c\\n\\t$(CC) -o $@ $<\\nclean:\\n\\trm -f program\\n' >Makefile",
        says="^it runs$",
    ),
    Workflow(
        "cmake with ninja, ctest",
        "compiled",
        ("cmake -G Ninja -B build . && cmake --build build && ctest --test-dir build",),
        needs=("cmake", "ninja"),
        before=f"{MAIN} && printf 'cmake_minimum_required(VERSION 3.10)\\nproject(it C)\\nadd_executable(it main.c)\\nenable_testing()\\n"
        "add_test(it it)\\n' >CMakeLists.txt",
        says="100% tests passed",
    ),
    Workflow(
        "autoreconf, ./configure, make, make dist",
        "compiled",
        ("autoreconf -i", "./configure", "make && ./it && make dist"),
        needs=("autoreconf", "automake"),
        before=f"{MAIN} && printf 'AC_INIT([it],[1])\\nAM_INIT_AUTOMAKE([foreign])\\nAC_PROG_CC\\nAC_CONFIG_FILES([Makefile])\\nAC_OUTPUT\\n' "
        ">configure.ac && printf 'bin_PROGRAMS = it\\nit_SOURCES = main.c\\n' >Makefile.am",
        says="^it runs$",
        after="test -f it-1.tar.gz",
    ),
    Workflow(
        "meson and ninja",
        "compiled",
        ("meson setup build && ninja -C build && build/it",),
        needs=("meson", "ninja"),
        before=f"{MAIN} && printf \"project('it', 'c')\\nexecutable('it', 'main.c')\\n\" >meson.build",
        says="^it runs$",
    ),
    Workflow(
        "cargo init, build, test, run",
        "compiled",
        ("cargo init --name it . && cargo build && cargo test -q", "cargo run -q"),
        needs=("cargo",),
        starts=(EMPTY,),
        says="^Hello, world!$",
        after="test -f Cargo.lock",
    ),
    Workflow(
        "cargo with a path dependency and a vendored one",
        "compiled",
        ("cargo build --offline && cargo run -q --offline",),
        needs=("cargo",),
        before="""
for name in it near vendored; do mkdir -p $name/src && printf '[package]\\nname = "%s"\\nversion = "1.0.0"\\nedition = "2021"\\n' $name >$name/Cargo.toml; done
printf '[dependencies]\\nnear = { path = "../near" }\\nvendored = "1"\\n' >>it/Cargo.toml
printf 'fn main() { println!("{}{}", near::say(), vendored::say()); }\\n' >it/src/main.rs
printf 'pub fn say() -> &'"'"'static str { "it " }\\n' >near/src/lib.rs
printf 'pub fn say() -> &'"'"'static str { "runs" }\\n' >vendored/src/lib.rs
mkdir vendor && mv vendored vendor/
printf '{"files":{}}' >vendor/vendored/.cargo-checksum.json
mkdir .cargo && printf '[source.crates-io]\\nreplace-with = "here"\\n[source.here]\\ndirectory = "vendor"\\n' >.cargo/config.toml
printf '[workspace]\\nmembers = ["it", "near"]\\nexclude = ["vendor"]\\n' >Cargo.toml
""",
        says="^it runs$",
    ),
    Workflow(
        "go mod init, build, test, vet",
        "compiled",
        (
            "go mod init example.com/it && go build -o program . && ./program",
            "go test ./... && go vet ./... && gofmt -l .",
        ),
        needs=("go",),
        before='printf \'package main\\n\\nimport "fmt"\\n\\nfunc main() { fmt.Println("it runs") }\\n\' >main.go && '
        "printf 'package main\\n\\nimport \"testing\"\\n\\nfunc TestIt(t *testing.T) { main() }\\n' >main_test.go",
        says="(?s)^it runs$.*^ok",
    ),
    Workflow(
        "maven package from a repository on the network",
        "compiled",
        (
            f"mvn -q -B -s settings.xml {PHASES} && java -cp target/it-1.jar Main",
            f"rm -r target && mvn -q -B -o -s settings.xml {PHASES} && test -f target/it-1.jar",
        ),
        needs=("mvn", "java"),
        reaches="REPOSITORY",
        before=f"{MAVEN} && echo '{SETTINGS}' >settings.xml",
        says="it runs$",
        homes=(".mavenrc",),
    ),
    Workflow(
        "maven package, offline",
        "compiled",
        ("mvn -q -B -o -Dmaven.repo.local=/usr/share/maven-repo compile jar:jar && java -cp target/it-1.jar Main",),
        needs=("mvn", "java"),
        before=MAVEN,
        says="it runs$",
        homes=(".mavenrc",),
    ),
    Workflow(
        "javac and java",
        "compiled",
        ("javac Main.java && java Main",),
        needs=("javac",),
        before=f"echo '{JAVA}' >Main.java",
        says="^it runs$",
    ),
    Workflow(
        "gdb, of a program that it starts",
        "compiled",
        ("gcc -g -o it main.c && gdb -q -batch -ex 'break main' -ex run -ex bt -ex continue ./it",),
        needs=("gdb", "gcc"),
        before=MAIN,
        says="(?s)#0 .*main .*it runs",
    ),
    Workflow(
        "gdb attached to a process of the same command",
        "compiled",
        ("sleep 100 & gdb -q -batch -p $! -ex 'info inferiors' && kill %1 2>/dev/null || kill $!",),
        needs=("gdb",),
        says="process [0-9]+ .*sleep",
    ),
    Workflow(
        "valgrind",
        "compiled",
        ("gcc -g -o it main.c && valgrind -q --error-exitcode=9 ./it",),
        needs=("valgrind",),
        before=MAIN,
        says="^it runs$",
    ),
    Workflow(
        "strace",
        "compiled",
        ("strace -f -e trace=execve -o trace sh -c 'true; ls >/dev/null' && cat trace",),
        needs=("strace",),
        says="execve",
    ),
    Workflow(
        "perl, ruby, php",
        "compiled",
        ("perl -e 'print \"perl\\n\"' && ruby -e 'puts :ruby' && php -r 'echo \"php\\n\";'",),
        needs=("perl", "ruby", "php"),
        says="(?s)perl.ruby.php",
    ),
)
