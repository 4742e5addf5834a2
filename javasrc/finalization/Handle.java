package finalization;

/**
 * A handle of a native resource, to be closed explicitly.
 *
 * <p>A volatile long stands for the resource: {@link #OPEN} when it is allocated, {@link #CLOSED}
 * when it is freed. It is volatile so that the compiler must keep both writes; {@link
 * OpaqueHandle} shows what that costs.
 */
interface Handle extends AutoCloseable {
  long OPEN = 1;
  long CLOSED = -1;

  /** Reads the resource. */
  long use();

  /** Frees the resource. Further calls do nothing. */
  @Override
  void close();
}
