package io.weft.spark.shuffle;

/** Throws Spark's checked exceptions where Scala's interfaces declare none. */
public final class Unchecked {
  private Unchecked() {}

  /** Throws the exception as it is; declared to return so that callers can write {@code throw}. */
  @SuppressWarnings("unchecked")
  public static <E extends Throwable> RuntimeException raise(Throwable exception) throws E {
    throw (E) exception;
  }
}
