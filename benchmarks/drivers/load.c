// Server and clients of benchmarks/network.py, in C so that what is measured is the way between them.
//
//   load serve                                 prints its port; HTTP/1.1 on 127.0.0.1, "GET /N" is answered with N bytes
//   load bulk WAY PROXY PORT BYTES             prints bytes per second of one answer of that size
//   load tunnels WAY PROXY PORT CLIENTS SECS   prints connections made per second, each ready to carry bytes, then closed
//   load latency WAY PROXY PORT COUNT          prints the seconds of each of COUNT small requests on one connection
//   load hold WAY PROXY PORT COUNT FILE        opens COUNT connections, prints "ready", ends once FILE is there
//
// WAY is "direct", "connect" or "plain"; PROXY is http://[user:password@]host:port, and ignored if direct.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 18, HEAD = 4096, SMALL = 1 << 14, MOST = 1 << 16 };

static void fail(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void send_all(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0) fail("send");
        data += sent;
        size -= (size_t)sent;
    }
}

// The server

struct answer {
    int fd;
    long long left;
};

// Head and, if it is small, body in one piece, as servers send it.
static int begin_answer(int fd, long long size) {
    static char text[SMALL + 128];
    int length = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\n\r\n", size);
    if (size <= SMALL) length += (int)size;
    return send(fd, text, (size_t)length, MSG_NOSIGNAL) == length;
}

static void *send_body(void *given) {
    struct answer answer = *(struct answer *)given;
    free(given);
    static char piece[PIECE];
    while (answer.left > 0) {
        size_t size = answer.left < PIECE ? (size_t)answer.left : PIECE;
        ssize_t sent = send(answer.fd, piece, size, MSG_NOSIGNAL);
        if (sent <= 0) break;
        answer.left -= sent;
    }
    return NULL;
}

static int serve_request(int fd) {
    char head[HEAD];
    ssize_t size = recv(fd, head, sizeof head - 1, 0);
    if (size <= 0) return 0;
    head[size] = 0;
    long long wanted = 0;
    // Requests are small and come whole on loopback; the path may be a whole URL if a proxy passes it on so.
    if (sscanf(head, "GET /%lld", &wanted) != 1 || !begin_answer(fd, wanted)) return 0;
    if (wanted <= SMALL) return 1;
    struct answer *answer = malloc(sizeof *answer);
    *answer = (struct answer){fd, wanted};
    pthread_t thread;
    if (pthread_create(&thread, NULL, send_body, answer)) fail("thread");
    pthread_detach(thread);
    return 1;
}

static void serve(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 4096)) fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(poll, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                if (!serve_request(fd)) close(fd);
                continue;
            }
            int taken = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (taken < 0) continue;
            setsockopt(taken, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            event = (struct epoll_event){.events = EPOLLIN, .data.fd = taken};
            epoll_ctl(poll, EPOLL_CTL_ADD, taken, &event);
        }
    }
}

// The clients

static enum { DIRECT, CONNECT, PLAIN } way;
static char host[256], credentials[1024];
static int proxy_port, port;

static void encode(const char *text, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i += 3) {
        unsigned b = (unsigned char)text[i] << 16;
        if (i + 1 < size) b |= (unsigned char)text[i + 1] << 8;
        if (i + 2 < size) b |= (unsigned char)text[i + 2];
        *out++ = digits[b >> 18];
        *out++ = digits[b >> 12 & 63];
        *out++ = i + 1 < size ? digits[b >> 6 & 63] : '=';
        *out++ = i + 2 < size ? digits[b & 63] : '=';
    }
    *out = 0;
}

static void decode(char *text) {
    char *out = text;
    for (; *text; text++) {
        unsigned code;
        if (*text == '%' && sscanf(text + 1, "%2x", &code) == 1) {
            *out++ = (char)code;
            text += 2;
        } else {
            *out++ = *text;
        }
    }
    *out = 0;
}

static void read_proxy(char *url) {
    char *rest = strstr(url, "://");
    rest = rest ? rest + 3 : url;
    char *at = strrchr(rest, '@'), encoded[900];
    if (at) {
        *at = 0;
        decode(rest);
        encode(rest, encoded);
        snprintf(credentials, sizeof credentials, "Proxy-Authorization: Basic %s\r\n", encoded);
        rest = at + 1;
    }
    if (sscanf(rest, "%255[^:]:%d", host, &proxy_port) != 2) fail("no proxy given");
}

static int connected(int at) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)at)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    return fd;
}

// Some bridges are not there yet when a command begins; that is no part of what is measured.
static void wait_for_listener(int at) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)at)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 500; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int refused = connect(fd, (struct sockaddr *)&address, sizeof address);
        close(fd);
        if (!refused) return;
        usleep(10000);
    }
}

static size_t read_head(int fd, char *buffer, size_t room, size_t *head) {
    size_t got = 0;
    for (;;) {
        ssize_t size = recv(fd, buffer + got, room - 1 - got, 0);
        if (size <= 0) fail("the connection ended in a head");
        got += (size_t)size;
        buffer[got] = 0;
        char *end = memmem(buffer, got, "\r\n\r\n", 4);
        if (!end) continue;
        int status = 0;
        if (sscanf(buffer, "HTTP/1.%*d %d", &status) != 1 || status != 200) {
            fprintf(stderr, "load: refused: %.*s\n", (int)(strcspn(buffer, "\r")), buffer);
            exit(1);
        }
        *head = (size_t)(end + 4 - buffer);
        return got;
    }
}

static int ready(void) {
    int fd = connected(way == DIRECT ? port : proxy_port);
    if (way == CONNECT) {
        char text[HEAD];
        size_t head;
        int size = snprintf(text, sizeof text, "CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n", port,
                            port, credentials);
        send_all(fd, text, (size_t)size);
        read_head(fd, text, sizeof text, &head);
    }
    return fd;
}

static void ask(int fd, long long size, char *buffer, size_t room) {
    char text[HEAD];
    int length = way == PLAIN
                     ? snprintf(text, sizeof text, "GET http://127.0.0.1:%d/%lld HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n",
                                port, size, port, credentials)
                     : snprintf(text, sizeof text, "GET /%lld HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", size, port);
    send_all(fd, text, (size_t)length);
    size_t head, got = read_head(fd, buffer, room, &head);
    long long left = size - (long long)(got - head);
    while (left > 0) {
        ssize_t more = recv(fd, buffer, room, 0);
        if (more <= 0) fail("the connection ended in a body");
        left -= more;
    }
}

static char large[1 << 20];

static void bulk(long long size) {
    int fd = ready();
    double began = now();
    ask(fd, size, large, sizeof large);
    printf("%.0f\n", size / (now() - began));
}

static _Atomic int made, running = 1;

static void *make(void *unused) {
    while (running) {
        int fd = ready();
        if (way == PLAIN) {
            char buffer[HEAD];
            ask(fd, 1, buffer, sizeof buffer);
        }
        close(fd);
        made++;
    }
    return unused;
}

static void tunnels(int clients, double seconds) {
    pthread_t threads[1024];
    double began = now();
    for (int i = 0; i < clients; i++)
        if (pthread_create(&threads[i], NULL, make, NULL)) fail("thread");
    usleep((useconds_t)(seconds * 1e6));
    running = 0;
    for (int i = 0; i < clients; i++) pthread_join(threads[i], NULL);
    printf("%.1f\n", made / (now() - began));
}

static void latency(int count) {
    int fd = ready();
    for (int i = 0; i < count; i++) {
        double began = now();
        ask(fd, 1, large, HEAD);
        printf("%.9f\n", now() - began);
    }
}

static void hold(int count, const char *file) {
    for (int i = 0; i < count; i++) ready();
    printf("ready\n");
    fflush(stdout);
    while (access(file, F_OK)) usleep(10000);
}

int main(int argc, char **argv) {
    struct rlimit files = {MOST, MOST};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && !strcmp(argv[1], "serve")) serve();
    if (argc < 6) fail("see the head of load.c");
    way = !strcmp(argv[2], "direct") ? DIRECT : !strcmp(argv[2], "connect") ? CONNECT : PLAIN;
    if (way != DIRECT) read_proxy(argv[3]);
    port = atoi(argv[4]);
    wait_for_listener(way == DIRECT ? port : proxy_port);
    if (!strcmp(argv[1], "bulk")) bulk(atoll(argv[5]));
    if (!strcmp(argv[1], "tunnels")) tunnels(atoi(argv[5]), atof(argv[6]));
    if (!strcmp(argv[1], "latency")) latency(atoi(argv[5]));
    if (!strcmp(argv[1], "hold")) hold(atoi(argv[5]), argv[6]);
    return 0;
}
