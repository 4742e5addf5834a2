package striped;

import java.lang.ref.Cleaner;

/**
 * Times several Cleaners in place of one, by the number of live handles and of threads. Prints a line
 * in the Go benchmark format.
 *
 * <p>It belongs to claims X27a and X27b. Arguments: the benchmark with its settings, such as {@code
 * ReplaceByThread/cleaners=4/live=1000/threads=4}, and the number of operations of all threads
 * together. An operation closes a random one of the thread's live handles and opens another in its
 * place. No handle has a resource.
 *
 * <ul>
 *   <li>{@code ReplaceByThread}: all handles of a thread use the same Cleaner
 *   <li>{@code ReplaceByHandle}: the handles of each thread use all Cleaners in turn
 * </ul>
 */
public final class Main {
  private static final int WARM_UP = 100_000;

  private Main() {}

  private static final class Handle implements AutoCloseable {
    private final Cleaner.Cleanable registration;

    Handle(Cleaner cleaner) {
      registration = cleaner.register(this, new Resource());
    }

    @Override
    public void close() {
      registration.clean();
    }
  }

  private static final class Resource implements Runnable {
    private boolean freed;

    @Override
    public void run() {
      freed = true;
    }
  }

  private static final class Replacer implements Runnable {
    private final Cleaner[] cleaners;
    private final Handle[] handles;
    private long random;
    private int count;

    Replacer(Cleaner[] cleaners, int live, long seed) {
      this.cleaners = cleaners;
      handles = new Handle[live];
      for (int i = 0; i < live; i++) {
        handles[i] = open(i);
      }
      random = seed;
    }

    private Handle open(int at) {
      return new Handle(cleaners[at % cleaners.length]);
    }

    @Override
    public void run() {
      for (int i = 0; i < count; i++) {
        random = random * 6364136223846793005L + 1442695040888963407L;
        int at = (int) ((random >>> 33) % handles.length);
        handles[at].close();
        handles[at] = open(at);
      }
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    String benchmark = arguments[0];
    int count = Integer.parseInt(arguments[1]);
    int threads = setting(benchmark, "threads");
    Cleaner[] cleaners = new Cleaner[setting(benchmark, "cleaners")];
    for (int i = 0; i < cleaners.length; i++) {
      cleaners[i] = Cleaner.create();
    }
    boolean byThread = benchmark.startsWith("ReplaceByThread/");
    Replacer[] replacers = new Replacer[threads];
    for (int i = 0; i < threads; i++) {
      Cleaner[] own = byThread ? new Cleaner[] {cleaners[i % cleaners.length]} : cleaners;
      replacers[i] = new Replacer(own, setting(benchmark, "live") / threads, i + 1);
    }
    each(replacers, WARM_UP / threads);
    long took = each(replacers, count / threads);
    int processors = Runtime.getRuntime().availableProcessors();
    String suffix = processors > 1 ? "-" + processors : "";
    System.out.println(
        "Benchmark" + benchmark + suffix + "\t" + count + "\t" + (double) took / count + " ns/op");
  }

  private static int setting(String benchmark, String key) {
    for (String part : benchmark.split("/")) {
      if (part.startsWith(key + "=")) {
        return Integer.parseInt(part.substring(key.length() + 1));
      }
    }
    throw new IllegalArgumentException(benchmark + " has no " + key);
  }

  /** Runs each replacer in a thread of its own, and returns the ns until the last one is done. */
  private static long each(Replacer[] replacers, int count) throws InterruptedException {
    Thread[] running = new Thread[replacers.length];
    long start = System.nanoTime();
    for (int i = 0; i < running.length; i++) {
      replacers[i].count = count;
      running[i] = new Thread(replacers[i]);
      running[i].start();
    }
    for (Thread thread : running) {
      thread.join();
    }
    return System.nanoTime() - start;
  }
}
