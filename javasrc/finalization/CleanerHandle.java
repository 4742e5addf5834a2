package finalization;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;

/** A handle with a cleaner, for when it is not closed. */
final class CleanerHandle implements Handle {
  private static final Cleaner CLEANER = Cleaner.create();

  private final Resource resource = new Resource();
  private final Cleaner.Cleanable registration = CLEANER.register(this, resource);

  /** What must be freed; it must not refer to the handle, or that would never be collected. */
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

  // Runs the resource's code once, and takes the registration away.
  @Override
  public void close() {
    registration.clean();
  }
}
