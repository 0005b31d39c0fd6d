package io.weft.spark.compat;

import java.util.List;
import java.util.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Converts Java values to the Scala values that Spark's constructors need. */
public final class ScalaInterop {
  private ScalaInterop() {}

  @SafeVarargs
  @SuppressWarnings("varargs")
  public static <T> Seq<T> seq(T... items) {
    return seq(List.of(items));
  }

  public static <T> Seq<T> seq(List<T> items) {
    return CollectionConverters.asScala(items).toSeq();
  }

  public static <K, V> scala.collection.immutable.Map<K, V> map(Map<K, V> entries) {
    return scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(entries));
  }

  public static <T> ClassTag<T> tag(Class<?> type) {
    return ClassTag$.MODULE$.apply(type);
  }

  /** Returns the tag of a generic type, from its erased class. */
  @SuppressWarnings("unchecked")
  public static <T> ClassTag<T> erasedTag(Class<?> type) {
    return (ClassTag<T>) tag(type);
  }
}
