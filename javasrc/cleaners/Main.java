package cleaners;

import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Times Cleaners by the number of live objects and of threads, and arenas next to Cleaners. Prints a
 * line in the Go benchmark format.
 *
 * <p>It belongs to claims X18a to X18d, X27a and X27b. Arguments: the benchmark with its settings, such as {@code
 * ReplaceCleaner/live=1000/threads=4}, and the number of operations.
 *
 * <ul>
 *   <li>{@code ReplacePlain}, {@code ReplaceCleaner}: each thread closes a random one of its live
 *       handles and opens another in its place
 *   <li>{@code ReplaceByThread}, {@code ReplaceByHandle}: the same with several Cleaners; all handles
 *       of a thread use one of them, or the handles of each thread use all of them in turn
 *   <li>{@code CollectPlain}, {@code CollectCleaner}: a full collection with so many live handles
 *   <li>{@code OpenPlain}, {@code OpenCleaner}, {@code OpenConfined}, {@code OpenShared}: a handle or
 *       an arena is opened and closed
 *   <li>{@code DropCleaner}, {@code DropAuto}: a handle or an automatic arena is opened and dropped
 * </ul>
 *
 * No handle has a resource, and nothing is allocated from an arena.
 */
public final class Main {
  private static final int WARM_UP = 100_000;

  // So that the compiler must allocate what is opened.
  private static AutoCloseable opened;

  private Main() {}

  /** A handle without a safety net. */
  private static final class Plain implements AutoCloseable {
    private boolean closed;

    @Override
    public void close() {
      closed = true;
    }
  }

  /** A handle with a Cleaner that frees its resource if it was not closed. */
  private static final class Cleaned implements AutoCloseable {
    private final Cleaner.Cleanable registration;

    Cleaned(Cleaner cleaner) {
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

  public static void main(String[] arguments) throws Exception {
    String benchmark = arguments[0];
    int count = Integer.parseInt(arguments[1]);
    int live = setting(benchmark, "live");
    int threads = setting(benchmark, "threads");
    String name = benchmark.split("/")[0];
    long took;
    if (name.startsWith("Replace")) {
      String kind = name.substring("Replace".length());
      took = replace(kind, setting(benchmark, "cleaners"), live, threads, count);
    } else if (name.startsWith("Collect")) {
      took = collect(source(name.substring("Collect".length())), live, count);
    } else if (name.startsWith("Open")) {
      took = open(source(name.substring("Open".length())), count, true);
    } else if (name.startsWith("Drop")) {
      took = open(source(name.substring("Drop".length())), count, false);
    } else {
      throw new IllegalArgumentException("there is no benchmark " + name);
    }
    int processors = Runtime.getRuntime().availableProcessors();
    String suffix = processors > 1 ? "-" + processors : "";
    System.out.println(
        "Benchmark" + benchmark + suffix + "\t" + count + "\t" + (double) took / count + " ns/op");
  }

  /** Returns a setting of a benchmark, or 1 if it has no such setting. */
  private static int setting(String benchmark, String key) {
    for (String part : benchmark.split("/")) {
      if (part.startsWith(key + "=")) {
        return Integer.parseInt(part.substring(key.length() + 1));
      }
    }
    return 1;
  }

  private static Supplier<AutoCloseable> source(String kind) {
    switch (kind) {
      case "Plain":
        return Plain::new;
      case "Cleaner":
      case "ByThread":
      case "ByHandle":
        Cleaner cleaner = Cleaner.create();
        return () -> new Cleaned(cleaner);
      case "Confined":
      case "Shared":
      case "Auto":
        return Arenas.source("of" + kind);
      default:
        throw new IllegalArgumentException(
            "there is no kind " + kind + ": want Plain, Cleaner, Confined, Shared or Auto");
    }
  }

  /** Returns the ns in which threads replace random handles, each thread of those it made. */
  private static long replace(String kind, int cleaners, int live, int threads, int count)
      throws Exception {
    List<Supplier<AutoCloseable>> sources = new ArrayList<>();
    for (int i = 0; i < cleaners; i++) {
      sources.add(source(kind));
    }
    Replacer[] replacers = new Replacer[threads];
    for (int i = 0; i < threads; i++) {
      boolean one = kind.equals("ByThread");
      List<Supplier<AutoCloseable>> own = one ? List.of(sources.get(i % cleaners)) : sources;
      replacers[i] = new Replacer(own, live / threads, i + 1);
    }
    each(replacers, WARM_UP / threads);
    return each(replacers, count / threads);
  }

  /** Runs each replacer in a thread of its own, and returns the ns until the last one is done. */
  private static long each(Replacer[] replacers, int count) throws Exception {
    Thread[] running = new Thread[replacers.length];
    long start = System.nanoTime();
    for (int i = 0; i < running.length; i++) {
      Replacer replacer = replacers[i];
      replacer.count = count;
      running[i] = new Thread(replacer);
      running[i].start();
    }
    for (Thread thread : running) {
      thread.join();
    }
    return System.nanoTime() - start;
  }

  private static final class Replacer implements Runnable {
    private final List<Supplier<AutoCloseable>> sources;
    private final AutoCloseable[] handles;
    private long random;
    private int count;

    Replacer(List<Supplier<AutoCloseable>> sources, int live, long seed) {
      this.sources = sources;
      handles = fill(sources, live);
      random = seed;
    }

    @Override
    public void run() {
      try {
        for (int i = 0; i < count; i++) {
          random = random * 6364136223846793005L + 1442695040888963407L;
          int at = (int) ((random >>> 33) % handles.length);
          handles[at].close();
          handles[at] = open(sources, at);
        }
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private static AutoCloseable[] fill(List<Supplier<AutoCloseable>> sources, int live) {
    AutoCloseable[] handles = new AutoCloseable[live];
    for (int i = 0; i < live; i++) {
      handles[i] = open(sources, i);
    }
    return handles;
  }

  private static AutoCloseable open(List<Supplier<AutoCloseable>> sources, int at) {
    return sources.get(at % sources.size()).get();
  }

  /** Returns the ns of full collections with live handles. */
  private static long collect(Supplier<AutoCloseable> source, int live, int count) {
    AutoCloseable[] handles = fill(List.of(source), live);
    System.gc(); // moves the handles to where they stay
    long start = System.nanoTime();
    for (int i = 0; i < count; i++) {
      System.gc();
    }
    long took = System.nanoTime() - start;
    opened = handles[live - 1]; // they live until now
    return took;
  }

  /** Returns the ns in which handles or arenas are opened, and closed or dropped. */
  private static long open(Supplier<AutoCloseable> source, int count, boolean close)
      throws Exception {
    long took = 0;
    for (int n : new int[] {Math.min(count, WARM_UP), count}) {
      long start = System.nanoTime();
      for (int i = 0; i < n; i++) {
        AutoCloseable made = source.get();
        opened = made;
        if (close) {
          made.close();
        }
      }
      took = System.nanoTime() - start;
    }
    return took;
  }
}
