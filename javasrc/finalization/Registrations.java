package finalization;

import java.lang.management.ManagementFactory;
import java.util.function.Supplier;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Counts the closed handles, and their registrations, that the JVM still keeps in memory.
 *
 * <p>It belongs to claim W4. The JVM takes its histogram of live objects right after a full
 * collection, in the same pause. Objects with finalizers are then queued, but not yet finalized. So
 * the first histogram counts what is left after closing, and the second what is left after the
 * finalizer thread has run. The heap must be large enough for the loop to run without a collection.
 */
final class Registrations {
  private static final String[] REGISTRATIONS = {
    "java.lang.ref.Finalizer", "jdk.internal.ref.CleanerImpl$PhantomCleanableRef"
  };

  private static final int TURNS = 20;

  private Registrations() {}

  /** Opens and closes handles, and prints how many are held then and after draining. */
  static void count(String benchmark, int count, Supplier<Handle> source) throws Exception {
    // Exclude what the JVM and the first handle register for themselves.
    Main.openAndClose(source);
    held();
    collect();
    Held before = held();
    long start = System.nanoTime();
    for (int i = 0; i < count; i++) {
      Main.openAndClose(source);
    }
    long took = System.nanoTime() - start;
    Held closed = held().minus(before);
    // Wait for the finalizer thread.
    Held drained;
    int turns = 0;
    do {
      collect();
      drained = held().minus(before);
    } while (drained.registrations > 0 && ++turns < TURNS);
    Result.print(
        benchmark,
        count,
        took,
        per(closed.registrations, count) + " registered/op",
        per(closed.handles, count) + " held/op",
        per(drained.registrations, count) + " registered-drained/op",
        per(drained.handles, count) + " held-drained/op");
  }

  /** Collects and finalizes everything possible. */
  @SuppressWarnings({"deprecation", "removal"})
  private static void collect() {
    for (int i = 0; i < 3; i++) {
      System.gc();
      System.runFinalization();
    }
  }

  private static double per(long held, int count) {
    return Math.max(held, 0) / (double) count;
  }

  /** Counts what the JVM holds after a full collection. */
  private static Held held() throws Exception {
    MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    Object answer =
        server.invoke(
            new ObjectName("com.sun.management:type=DiagnosticCommand"),
            "gcClassHistogram",
            new Object[] {new String[0]},
            new String[] {String[].class.getName()});
    Held held = new Held();
    // A line has a rank, instances, bytes, a class and a module.
    for (String line : answer.toString().split("\n")) {
      String[] fields = line.trim().split("\\s+");
      if (fields.length < 4 || !fields[0].endsWith(":")) {
        continue;
      }
      long instances = Long.parseLong(fields[1]);
      for (String registration : REGISTRATIONS) {
        held.registrations += fields[3].equals(registration) ? instances : 0;
      }
      if (fields[3].startsWith("finalization.") && fields[3].endsWith("Handle")) {
        held.handles += instances;
      }
    }
    return held;
  }

  private static final class Held {
    long registrations;
    long handles;

    Held minus(Held other) {
      Held difference = new Held();
      difference.registrations = registrations - other.registrations;
      difference.handles = handles - other.handles;
      return difference;
    }
  }
}
