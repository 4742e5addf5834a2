package finalization;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Prints results in the Go benchmark format. */
final class Result {
  private static final Path STATUS = Path.of("/proc/self/status");

  private Result() {}

  /** Prints a line for a loop, with the peak resident set size of the process. */
  static void print(String name, int count, long nanoseconds, String... metrics) {
    StringBuilder line = new StringBuilder("Benchmark").append(name);
    int processors = Runtime.getRuntime().availableProcessors();
    if (processors > 1) {
      line.append('-').append(processors);
    }
    line.append('\t').append(count);
    line.append('\t').append((double) nanoseconds / count).append(" ns/op");
    for (String metric : metrics) {
      line.append('\t').append(metric);
    }
    long peak = peak();
    if (peak > 0) {
      line.append('\t').append(peak).append(" peak-rss-bytes");
    }
    System.out.println(line);
  }

  /**
   * Returns the peak resident set size so far in bytes, or 0 if it is unknown.
   *
   * <p>The parent process cannot measure it: the maximum that getrusage returns for a child survives
   * exec, so it may be the parent's own.
   */
  private static long peak() {
    try {
      for (String line : Files.readAllLines(STATUS)) {
        if (line.startsWith("VmHWM:")) {
          return 1024 * Long.parseLong(line.replaceAll("\\D", ""));
        }
      }
    } catch (IOException e) {
      // Not on Linux.
    }
    return 0;
  }
}
