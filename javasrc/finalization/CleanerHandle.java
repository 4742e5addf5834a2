package finalization;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;

/** A handle with a cleaner that frees the resource if it was not closed. */
final class CleanerHandle implements Handle {
  private static final Cleaner CLEANER = Cleaner.create();

  private final Resource resource = new Resource();
  private final Cleaner.Cleanable registration = CLEANER.register(this, resource);

  /** The resource. It must not refer to the handle, which would then never be collected. */
  private static final class Resource implements Runnable {
    volatile long value = OPEN;

    @Override
    public void run() {
      value = CLOSED;
    }
  }

  @Override
  public long use() {
    try {
      return resource.value;
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  // Runs the resource's code, at most once, and removes the registration.
  @Override
  public void close() {
    registration.clean();
  }
}
