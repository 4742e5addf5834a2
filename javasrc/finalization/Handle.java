package finalization;

/**
 * A handle on a native resource, closed by hand.
 *
 * <p>The resource is played by a volatile long: {@link #OPEN} where it is allocated, {@link
 * #CLOSED} where it is freed. Volatile, so that the compiler must keep the two writes.
 */
interface Handle extends AutoCloseable {
  long OPEN = 1;
  long CLOSED = -1;

  /** Reads the resource. */
  long use();

  /** Frees the resource; a second call does nothing. */
  @Override
  void close();
}
