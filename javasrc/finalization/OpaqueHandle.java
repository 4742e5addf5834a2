package finalization;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * A {@link PlainHandle} whose writes are opaque instead of volatile: the compiler must keep them, but
 * they order no other access to memory.
 */
final class OpaqueHandle implements Handle {
  private static final VarHandle RESOURCE;

  static {
    try {
      RESOURCE = MethodHandles.lookup().findVarHandle(OpaqueHandle.class, "resource", long.class);
    } catch (ReflectiveOperationException impossible) {
      throw new ExceptionInInitializerError(impossible);
    }
  }

  private long resource;

  OpaqueHandle() {
    RESOURCE.setOpaque(this, OPEN);
  }

  @Override
  public long use() {
    return (long) RESOURCE.getOpaque(this);
  }

  @Override
  public void close() {
    if ((long) RESOURCE.getOpaque(this) != CLOSED) {
      RESOURCE.setOpaque(this, CLOSED);
    }
  }
}
