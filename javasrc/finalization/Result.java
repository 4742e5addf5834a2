package finalization;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A line of the Go benchmark format. */
final class Result {
  private static final Path STATUS = Path.of("/proc/self/status");

  private Result() {}

  /** Prints what a loop took, with the largest resident set of the process. */
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
   * The largest resident set so far in bytes, 0 where the system does not tell.
   *
   * <p>What the system tells a parent of its child may be the parent's own: it is kept when a
   * program is started in the place of another.
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
