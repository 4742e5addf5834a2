package finalization;

import java.lang.ref.Reference;

/** A handle with a finalizer, for when it is not closed. */
final class FinalizeHandle implements Handle {
  private volatile long resource = OPEN;

  @Override
  public long use() {
    try {
      return resource;
    } finally {
      // Or the finalizer could free the resource while it is read.
      Reference.reachabilityFence(this);
    }
  }

  // Synchronized: the finalizer thread may come at any time.
  @Override
  public synchronized void close() {
    if (resource != CLOSED) {
      resource = CLOSED;
    }
  }

  @Override
  @SuppressWarnings({"deprecation", "removal"})
  protected synchronized void finalize() {
    close();
  }
}
