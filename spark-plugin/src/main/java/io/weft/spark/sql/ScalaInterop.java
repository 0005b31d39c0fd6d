package io.weft.spark.sql;

import java.util.List;
import java.util.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** The few Scala values that Spark's constructors ask for, made from Java ones. */
final class ScalaInterop {
  private ScalaInterop() {}

  @SafeVarargs
  @SuppressWarnings("varargs")
  static <T> Seq<T> seq(T... items) {
    return seq(List.of(items));
  }

  static <T> Seq<T> seq(List<T> items) {
    return CollectionConverters.asScala(items).toSeq();
  }

  static <K, V> scala.collection.immutable.Map<K, V> map(Map<K, V> entries) {
    return scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(entries));
  }

  static <T> ClassTag<T> tag(Class<?> type) {
    return ClassTag$.MODULE$.apply(type);
  }

  /** The tag of a generic type, whose class knows less than its type. */
  @SuppressWarnings("unchecked")
  static <T> ClassTag<T> erasedTag(Class<?> type) {
    return (ClassTag<T>) tag(type);
  }
}
