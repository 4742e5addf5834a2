package finalization;

/** A handle whose resource leaks if it is not closed. */
final class PlainHandle implements Handle {
  private volatile long resource = OPEN;

  @Override
  public long use() {
    return resource;
  }

  @Override
  public void close() {
    if (resource != CLOSED) {
      resource = CLOSED;
    }
  }
}
