package finalization;

import java.lang.ref.Reference;

/** A handle with a finalizer that frees the resource if it was not closed. */
final class FinalizeHandle implements Handle {
  private volatile long resource = OPEN;

  @Override
  public long use() {
    try {
      return resource;
    } finally {
      // Otherwise the finalizer could free the resource while it is being read.
      Reference.reachabilityFence(this);
    }
  }

  // Synchronized, because the finalizer thread may call it at any time.
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
