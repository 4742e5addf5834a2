package truths;

import java.lang.management.ManagementFactory;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import javax.management.ObjectName;

/**
 * Counts what a JVM does where a good guess is wrong: chapter 8b, "In Java". It prints a line for each,
 * without times. The argument names one.
 */
public final class Main {
  private static final int OBJECTS = 200;

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "order":
        order();
        break;
      case "throws":
        throwing();
        break;
      case "inner":
        inner();
        break;
      case "empty":
        empty();
        break;
      case "young":
        young();
        break;
      case "sizes":
        sizes();
        break;
      default:
        throw new IllegalArgumentException("there is no " + arguments[0]);
    }
  }

  /** Prints the order in which a Cleaner that was blocked cleans three batches, which died in turn. */
  private static void order() throws Exception {
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
    System.out.println(batches);
  }

  /** Prints how many actions ran of those that each throw, and how many exceptions a handler saw. */
  private static void throwing() throws Exception {
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
    System.out.println(ran.get() + " " + seen.get());
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

  /** Prints how many of the dropped handles with an inner class are freed. */
  private static void inner() throws Exception {
    for (int i = 0; i < OBJECTS; i++) {
      new Handle();
    }
    collectUntil(() -> FREED.get() == OBJECTS);
    System.out.println(FREED.get());
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

  /** Prints how many registrations 1,000 live objects have with an empty finalize, and with one that calls super's. */
  private static void empty() throws Exception {
    List<Object> kept = new ArrayList<>();
    long before = live(FINALIZER)[0];
    for (int i = 0; i < 1000; i++) {
      kept.add(new Empty());
    }
    long withEmpty = live(FINALIZER)[0] - before;
    for (int i = 0; i < 1000; i++) {
      kept.add(new CallsSuper());
    }
    long withSuper = live(FINALIZER)[0] - before - withEmpty;
    System.out.println(withEmpty + " " + withSuper + " " + kept.size());
  }

  private static final String FINALIZER = "java.lang.ref.Finalizer";
  private static final String CLEANABLE = "jdk.internal.ref.CleanerImpl$PhantomCleanableRef";

  /** Prints the bytes of a registration with a Cleaner, and of one of an object with finalize. */
  private static void sizes() throws Exception {
    List<Object> kept = new ArrayList<>();
    for (int i = 0; i < 1000; i++) {
      Object object = new Object();
      CLEANER.register(object, FREED::incrementAndGet);
      kept.add(object);
      kept.add(new CallsSuper());
    }
    long[] cleanables = live(CLEANABLE);
    long[] finalizers = live(FINALIZER);
    System.out.println(
        cleanables[1] / cleanables[0] + " " + finalizers[1] / finalizers[0] + " " + kept.size());
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

  /** Prints whether objects that die young are freed by five young collections without a full one. */
  private static void young() throws Exception {
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
        System.out.println(freed > OBJECTS / 2 ? "freed" : "none");
        return;
      }
    }
    System.out.println("a full collection came each time");
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
