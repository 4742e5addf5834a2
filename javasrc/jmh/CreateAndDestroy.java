package jmh;

import java.lang.ref.Cleaner;
import org.openjdk.jmh.annotations.Benchmark;

/**
 * Creates and destroys a simple object, with and without a finalizer.
 *
 * <p>Without one, the cost depends on whether the compiler can prove that the object does not escape:
 * it then removes the allocation. So there are two baselines.
 */
public class CreateAndDestroy {
  private static final Cleaner CLEANER = Cleaner.create();

  static class Simple implements AutoCloseable {
    long resource = 1;

    @Override
    public void close() {
      resource = -1;
    }
  }

  static final class Finalized extends Simple {
    @Override
    @SuppressWarnings({"deprecation", "removal"})
    protected void finalize() {
      close();
    }
  }

  static final class Cleaned implements AutoCloseable {
    private final Simple resource = new Simple();
    private final Cleaner.Cleanable registration = CLEANER.register(this, resource::close);

    @Override
    public void close() {
      registration.clean();
    }
  }

  /** The object does not escape, so the compiler may remove the allocation. */
  @Benchmark
  public long removed() {
    try (Simple object = new Simple()) {
      return object.resource;
    }
  }

  /** The object escapes, so it must be allocated. */
  @Benchmark
  public Object escaping() {
    Simple object = new Simple();
    object.close();
    return object;
  }

  @Benchmark
  public Object finalized() {
    Finalized object = new Finalized();
    object.close();
    return object;
  }

  @Benchmark
  public Object cleaned() {
    Cleaned object = new Cleaned();
    object.close();
    return object;
  }
}
