package jmh;

import java.lang.ref.Cleaner;
import org.openjdk.jmh.annotations.Benchmark;

/**
 * Creating and destroying a simple object, with and without a finalizer.
 *
 * <p>What "without" costs depends on whether the compiler can prove that nobody else sees the object: it
 * then makes none at all. So there are two baselines.
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

  /** The object does not leave the method: the compiler may remove it. */
  @Benchmark
  public long removed() {
    try (Simple object = new Simple()) {
      return object.resource;
    }
  }

  /** The object is handed on, so it must be made. */
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
