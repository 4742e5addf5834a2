package leak;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.lang.ref.Cleaner;
import java.nio.charset.StandardCharsets;

/**
 * Tests whether a native resource leaks when its handle is created with only a few bytes of heap
 * left.
 *
 * <p>It belongs to claims W6 and W6b. The first argument is {@code LeakNaive/remaining=48}, or the
 * same with another of {@link #KINDS}: how the handle is created, and how many bytes of the heap
 * are left, a multiple of 8. The second argument is the number of
 * operations, 1. The outcome is deterministic if nothing else allocates: run it with {@code
 * -XX:+UseEpsilonGC}, which never collects, {@code -XX:-UseTLAB} and {@code -Xint}. The resource is
 * only counted. Nothing may allocate once the heap is full, so the output is prepared beforehand.
 */
public final class Main {
  private static final Cleaner CLEANER = Cleaner.create();
  // The size of a byte[0].
  private static final int HEADER = 16;
  private static final int CHUNK = 1 << 20;
  private static final String[] KINDS = {"Naive", "RegisterFirst", "TryCatch", "Finalize"};

  private static int allocated;
  private static int freed;
  private static byte[][] ballast;

  private Main() {}

  /** The native resource, freed by the cleaner or manually. */
  private static final class Resource implements Runnable {
    private boolean open;

    void allocate() {
      open = true;
      allocated++;
    }

    @Override
    public void run() {
      if (open) {
        open = false;
        freed++;
      }
    }
  }

  private abstract static class Handle {
    Cleaner.Cleanable registration;

    abstract Handle open();

    void close() {
      registration.clean();
    }
  }

  /** Allocates, then registers, as the document's example does. */
  private static final class Naive extends Handle {
    @Override
    Handle open() {
      Resource resource = new Resource();
      resource.allocate();
      registration = CLEANER.register(this, resource);
      return this;
    }
  }

  /** Registers a resource before allocating it. */
  private static final class RegisterFirst extends Handle {
    @Override
    Handle open() {
      Resource resource = new Resource();
      registration = CLEANER.register(this, resource);
      resource.allocate();
      return this;
    }
  }

  /** Frees the resource if it cannot be registered. */
  private static final class TryCatch extends Handle {
    @Override
    Handle open() {
      Resource resource = new Resource();
      resource.allocate();
      try {
        registration = CLEANER.register(this, resource);
      } catch (Throwable failure) {
        resource.run();
        throw failure;
      }
      return this;
    }
  }

  /** Has a finalizer: the JVM registers it before its resource is allocated. */
  private static final class Finalize extends Handle {
    private Resource resource;

    @Override
    Handle open() {
      resource = new Resource();
      resource.allocate();
      return this;
    }

    @Override
    void close() {
      resource.run();
    }

    @Override
    @SuppressWarnings({"deprecation", "removal"})
    protected void finalize() {
      if (resource != null) {
        close();
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    String benchmark = arguments[0];
    String kind = benchmark.substring("Leak".length(), benchmark.indexOf('/'));
    int remaining = Integer.parseInt(benchmark.substring(benchmark.indexOf('=') + 1));
    // Do all class loading and one-time initialization now.
    for (String each : KINDS) {
      make(each).close();
    }
    Class.forName("java.lang.Shutdown");
    byte[][] lines = new byte[8][];
    for (int outcome = 0; outcome < lines.length; outcome++) {
      lines[outcome] = line(benchmark, outcome);
    }
    FileOutputStream out = new FileOutputStream(FileDescriptor.out);
    Runtime runtime = Runtime.getRuntime();
    ballast = new byte[(int) (runtime.maxMemory() / CHUNK) + 2][];
    allocated = 0;
    freed = 0;
    fill(remaining);
    boolean opened = attempt(kind);
    out.write(lines[(opened ? 4 : 0) + 2 * allocated + freed]);
    runtime.halt(0);
  }

  /** Opens and closes a handle, and returns whether it could be opened. */
  private static boolean attempt(String kind) {
    Handle handle;
    try {
      handle = make(kind);
    } catch (OutOfMemoryError full) {
      return false;
    }
    handle.close();
    return true;
  }

  private static Handle make(String kind) {
    switch (kind) {
      case "Naive":
        return new Naive().open();
      case "RegisterFirst":
        return new RegisterFirst().open();
      case "TryCatch":
        return new TryCatch().open();
      case "Finalize":
        return new Finalize().open();
      default:
        throw new IllegalArgumentException(kind + ": want " + String.join(", ", KINDS));
    }
  }

  /** Fills the heap until exactly {@code remaining} bytes are left. */
  private static void fill(int remaining) {
    Runtime runtime = Runtime.getRuntime();
    int i = 0;
    while (runtime.freeMemory() > remaining + 2L * CHUNK) {
      ballast[i++] = new byte[CHUNK - HEADER];
    }
    ballast[i++] = new byte[(int) (runtime.freeMemory() - remaining - CHUNK) - HEADER];
    ballast[i] = new byte[(int) (runtime.freeMemory() - remaining) - HEADER];
    if (runtime.freeMemory() != remaining) {
      Runtime.getRuntime().halt(4);
    }
  }

  /** Returns the line for an outcome: 4 if opened, plus 2 if allocated, plus 1 if freed. */
  private static byte[] line(String benchmark, int outcome) {
    int opened = outcome >> 2;
    int wasAllocated = outcome >> 1 & 1;
    int wasFreed = outcome & 1;
    String text =
        String.format(
            "Benchmark%s\t1\t%d opened\t%d native-allocated\t%d native-freed\t%d leaked\n",
            benchmark, opened, wasAllocated, wasFreed, Math.max(wasAllocated - wasFreed, 0));
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
