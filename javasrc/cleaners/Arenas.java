package cleaners;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.Supplier;

/**
 * Opens arenas of {@code java.lang.foreign}, which JDKs have since 22.
 *
 * <p>The classes are compiled for older JDKs, too, so the arena's class is looked up by its name. The
 * handle is a constant, so that the compiler calls the method directly.
 */
final class Arenas {
  private static String method;

  private Arenas() {}

  private static final class Opening {
    static final MethodHandle OPEN = find();

    private static MethodHandle find() {
      try {
        Class<?> arena = Class.forName("java.lang.foreign.Arena");
        MethodType type = MethodType.methodType(arena);
        return MethodHandles.publicLookup()
            .findStatic(arena, method, type)
            .asType(MethodType.methodType(AutoCloseable.class));
      } catch (ReflectiveOperationException missing) {
        System.err.println(
            "JDK "
                + Runtime.version().feature()
                + " has no java.lang.foreign.Arena: JDK 22 or later has it");
        System.exit(1);
        return null;
      }
    }
  }

  /** Returns what opens arenas by a static method of the class. All calls must name the same. */
  static Supplier<AutoCloseable> source(String name) {
    method = name;
    return Arenas::open;
  }

  private static AutoCloseable open() {
    try {
      return (AutoCloseable) Opening.OPEN.invokeExact();
    } catch (Throwable failure) {
      throw new IllegalStateException(failure);
    }
  }
}
