package io.weft.spark.shuffle;

/** Throws checked exceptions of Spark from methods of Scala interfaces, which declare none. */
public final class SneakyThrow {
  private SneakyThrow() {}

  /** Throws the exception unchanged. The return type lets callers write {@code throw}. */
  @SuppressWarnings("unchecked")
  public static <E extends Throwable> RuntimeException raise(Throwable exception) throws E {
    throw (E) exception;
  }
}
