package finalization;

import java.util.function.Supplier;

/**
 * Opens, uses and closes handles one after another, and prints the time as a line in the Go
 * benchmark format.
 *
 * <p>It belongs to claims W1 to W5. Arguments: the benchmark and the number of handles. {@code
 * Plain}, {@code Opaque}, {@code Cleaner} and {@code Finalize} are kinds of handles. {@code Nothing} opens none and
 * so shows the cost of the JVM itself. {@code RegisteredPlain} and so on count what is left of
 * closed handles.
 */
public final class Main {
  private static final String REGISTERED = "Registered";

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    String benchmark = arguments[0];
    int count = Integer.parseInt(arguments[1]);
    if (benchmark.startsWith(REGISTERED)) {
      Supplier<Handle> source = source(benchmark.substring(REGISTERED.length()));
      Registrations.count(benchmark, count, source);
      return;
    }
    if (benchmark.equals("Nothing")) {
      Result.print(benchmark, count, 0);
      return;
    }
    Supplier<Handle> source = source(benchmark);
    long start = System.nanoTime();
    for (int i = 0; i < count; i++) {
      openAndClose(source);
    }
    Result.print(benchmark, count, System.nanoTime() - start);
  }

  private static Supplier<Handle> source(String kind) {
    switch (kind) {
      case "Plain":
        return PlainHandle::new;
      case "Opaque":
        return OpaqueHandle::new;
      case "Cleaner":
        return CleanerHandle::new;
      case "Finalize":
        return FinalizeHandle::new;
      default:
        throw new IllegalArgumentException(
            "there is no benchmark " + kind + ": want Plain, Opaque, Cleaner or Finalize");
    }
  }

  static void openAndClose(Supplier<Handle> source) {
    try (Handle handle = source.get()) {
      handle.use();
    }
  }
}
