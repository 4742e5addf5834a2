package surprises;

import java.lang.management.ManagementFactory;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import javax.management.ObjectName;

/**
 * Counts what a JVM does where a good guess is wrong: chapter 8b, "In Java".
 *
 * <p>The first argument names a benchmark, the second the number of operations, 1. It prints a line in
 * the Go benchmark format: shares and counts, and no times but that of the process.
 */
public final class Main {
  private static final int OBJECTS = 200;
  private static final long BEGAN = System.nanoTime();

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    String name = arguments[0];
    switch (name) {
      case "BlockedCleaner":
        print(name, "oldest-first", blocked());
        break;
      case "ThrowingAction":
        double[] shares = throwing();
        print(name, "ran-share", shares[0], "reported-share", shares[1]);
        break;
      case "InnerAction":
        print(name, "ran-share", inner());
        break;
      case "EmptyFinalize":
        print(name, "registered/op", registered(Empty::new));
        break;
      case "SuperFinalize":
        print(name, "registered/op", registered(CallsSuper::new));
        break;
      case "YoungCollections":
        print(name, "ran-share", young());
        break;
      case "VirtualCleaner":
        print(name, "ran-share", ofVirtualThread());
        break;
      case "Registrations":
        print(name, "cleaner-bytes", bytes(CLEANABLE), "finalize-bytes", bytes(FINALIZER));
        break;
      default:
        throw new IllegalArgumentException("there is no " + name);
    }
  }

  /** Prints values, each after its unit. */
  private static void print(String name, Object... values) {
    long elapsed = System.nanoTime() - BEGAN;
    StringBuilder line = new StringBuilder("Benchmark" + name + "\t1\t" + elapsed + " ns/op");
    for (int i = 0; i < values.length; i += 2) {
      line.append("\t").append(values[i + 1]).append(" ").append(values[i]);
    }
    System.out.println(line);
  }

  /**
   * Returns 1 if a Cleaner that was blocked cleans three batches, which died in turn, from the oldest to
   * the newest, and 0 if it begins with the newest.
   */
  private static int blocked() throws Exception {
    Cleaner cleaner = Cleaner.create();
    CountDownLatch entered = new CountDownLatch(1);
    CountDownLatch open = new CountDownLatch(1);
    List<Integer> cleaned = Collections.synchronizedList(new ArrayList<>());
    cleaner.register(
        new Object(),
        () -> {
          entered.countDown();
          try {
            open.await();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        });
    collectUntil(() -> entered.getCount() == 0);
    for (int batch = 0; batch < 3; batch++) {
      int number = batch;
      for (int i = 0; i < OBJECTS; i++) {
        cleaner.register(new Object(), () -> cleaned.add(number));
      }
      System.gc();
      Thread.sleep(200); // until the references are enqueued
    }
    open.countDown();
    collectUntil(() -> cleaned.size() == 3 * OBJECTS);
    List<Integer> batches = new ArrayList<>();
    for (int number : cleaned) {
      if (!batches.contains(number)) {
        batches.add(number);
      }
    }
    List<Integer> newestFirst = List.of(2, 1, 0);
    if (!batches.equals(newestFirst) && !batches.equals(List.of(0, 1, 2))) {
      throw new AssertionError("the order of the batches is " + batches);
    }
    return batches.equals(newestFirst) ? 0 : 1;
  }

  /** Returns the share of actions that ran, of those that each throw, and of exceptions that a handler saw. */
  private static double[] throwing() throws Exception {
    AtomicInteger ran = new AtomicInteger();
    AtomicInteger seen = new AtomicInteger();
    Thread.setDefaultUncaughtExceptionHandler((thread, thrown) -> seen.incrementAndGet());
    Cleaner cleaner = Cleaner.create();
    for (int i = 0; i < OBJECTS; i++) {
      cleaner.register(
          new Object(),
          () -> {
            ran.incrementAndGet();
            throw new IllegalStateException("of an action");
          });
    }
    collectUntil(() -> ran.get() == OBJECTS);
    return new double[] {(double) ran.get() / OBJECTS, (double) seen.get() / OBJECTS};
  }

  private static final AtomicInteger FREED = new AtomicInteger();
  private static final Cleaner CLEANER = Cleaner.create();

  /** A handle whose action is an inner class that does not use the handle. */
  private static final class Handle {
    Handle() {
      CLEANER.register(
          this,
          new Runnable() {
            @Override
            public void run() {
              FREED.incrementAndGet();
            }
          });
    }
  }

  /** Returns the share of dropped handles with an inner class that are freed. */
  private static double inner() throws Exception {
    for (int i = 0; i < OBJECTS; i++) {
      new Handle();
    }
    collectUntil(() -> FREED.get() == OBJECTS);
    return (double) FREED.get() / OBJECTS;
  }

  /** Returns the share of dropped objects that a Cleaner with a virtual thread cleans (JDK 21). */
  private static double ofVirtualThread() throws Exception {
    Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
    Class<?> builders = Class.forName("java.lang.Thread$Builder");
    Cleaner cleaner = Cleaner.create((ThreadFactory) builders.getMethod("factory").invoke(builder));
    FREED.set(0);
    for (int i = 0; i < OBJECTS; i++) {
      cleaner.register(new Object(), FREED::incrementAndGet);
    }
    collectUntil(() -> FREED.get() == OBJECTS);
    return (double) FREED.get() / OBJECTS;
  }

  private static class Empty {
    @Override
    @SuppressWarnings({"deprecation", "removal"})
    protected void finalize() {}
  }

  private static class CallsSuper {
    @Override
    @SuppressWarnings({"deprecation", "removal"})
    protected void finalize() throws Throwable {
      super.finalize();
    }
  }

  /** Returns how many registrations a live object of a class has. */
  private static double registered(Supplier<Object> make) throws Exception {
    List<Object> kept = new ArrayList<>();
    long before = live(FINALIZER)[0];
    for (int i = 0; i < 1000; i++) {
      kept.add(make.get());
    }
    return (double) (live(FINALIZER)[0] - before) / kept.size();
  }

  private static final String FINALIZER = "java.lang.ref.Finalizer";
  private static final String CLEANABLE = "jdk.internal.ref.CleanerImpl$PhantomCleanableRef";

  /** Returns the bytes of a registration of that class. */
  private static long bytes(String registration) throws Exception {
    List<Object> kept = new ArrayList<>();
    for (int i = 0; i < 1000; i++) {
      Object object = new Object();
      CLEANER.register(object, FREED::incrementAndGet);
      kept.add(object);
      kept.add(new CallsSuper());
    }
    long[] all = live(registration);
    if (kept.size() != 2000) {
      throw new AssertionError("the objects are gone");
    }
    return all[1] / all[0];
  }

  /** Returns the number of live objects of a class, and their bytes. */
  private static long[] live(String name) throws Exception {
    Object histogram =
        ManagementFactory.getPlatformMBeanServer()
            .invoke(
                new ObjectName("com.sun.management:type=DiagnosticCommand"),
                "gcClassHistogram",
                new Object[] {null},
                new String[] {String[].class.getName()});
    for (String line : histogram.toString().split("\n")) {
      String[] fields = line.trim().split("\\s+");
      if (fields.length > 3 && fields[3].equals(name)) {
        return new long[] {Long.parseLong(fields[1]), Long.parseLong(fields[2])};
      }
    }
    return new long[] {0, 0};
  }

  private static byte[] garbage;

  /** Returns the share of objects that die young that five young collections free, without a full one. */
  private static double young() throws Exception {
    collections(true, 5); // the JVM's first ones may be of another kind
    for (int tries = 0; tries < 20; tries++) {
      FREED.set(0);
      for (int i = 0; i < OBJECTS; i++) {
        CLEANER.register(new Object(), FREED::incrementAndGet);
      }
      long full = collections(false, 0);
      collections(true, 5);
      Thread.sleep(200);
      int freed = FREED.get();
      if (collections(false, 0) == full) {
        return (double) freed / OBJECTS;
      }
    }
    throw new AssertionError("a full collection came each time");
  }

  /** Makes garbage until so many more collections have run, young ones or others; returns their number. */
  private static long collections(boolean young, int more) {
    long began = count(young);
    while (count(young) < began + more) {
      garbage = new byte[100_000];
    }
    return count(young);
  }

  private static long count(boolean young) {
    return ManagementFactory.getGarbageCollectorMXBeans().stream()
        .filter(bean -> !bean.getName().endsWith("Pauses"))
        .filter(bean -> bean.getName().matches(".*(Copy|Young.*|Scavenge|Minor.*)") == young)
        .mapToLong(bean -> bean.getCollectionCount())
        .sum();
  }

  private interface Condition {
    boolean holds();
  }

  /** Collects until the condition holds, or ten times. */
  private static void collectUntil(Condition condition) throws InterruptedException {
    for (int i = 0; i < 10 && !condition.holds(); i++) {
      System.gc();
      Thread.sleep(100);
    }
  }
}
