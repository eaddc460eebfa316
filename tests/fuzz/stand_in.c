/* A stand-in for every program that a line of the fuzzer could start: it notes where it lies, its words and its
   environment, and does nothing else. One write to a file that was opened for appending, so that records of programs
   that run at once do not mix. Fields end with a NUL: LINE, EXE, ARGC, ARGV..., ENVC, ENV... */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char record[1 << 17];
static size_t size;

static void field(const char *text) {
  size_t length = strlen(text) + 1;
  if (size + length > sizeof record) _exit(3);
  memcpy(record + size, text, length);
  size += length;
}

static void list(char **items) {
  char number[16];
  int count = 0;
  while (items[count]) count++;
  snprintf(number, sizeof number, "%d", count);
  field(number);
  for (int at = 0; at < count; at++) field(items[at]);
}

int main(int argc, char **argv, char **environment) {
  char place[4096];
  const char *line = getenv("FUZZ_LINE");
  ssize_t length = readlink("/proc/self/exe", place, sizeof place - 1);
  (void)argc;
  place[length < 0 ? 0 : length] = 0;
  field(line ? line : "");
  field(length < 0 ? argv[0] : place);
  list(argv);
  list(environment);
  int log = open(LOG, O_WRONLY | O_APPEND);
  return log < 0 || write(log, record, size) != (ssize_t)size;
}
