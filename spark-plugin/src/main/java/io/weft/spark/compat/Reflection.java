package io.weft.spark.compat;

/** Passes exceptions of reflective calls on. */
final class Reflection {
  private Reflection() {}

  /**
   * Throws an exception of Spark unchanged, also a checked one. The return type lets callers write
   * {@code throw}.
   */
  static RuntimeException rethrow(Throwable exception) {
    return Reflection.<RuntimeException>raise(exception);
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException raise(Throwable exception) throws E {
    throw (E) exception;
  }
}
