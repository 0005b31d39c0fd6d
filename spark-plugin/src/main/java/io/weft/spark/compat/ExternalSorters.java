package io.weft.spark.compat;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import org.apache.spark.Aggregator;
import org.apache.spark.Partitioner;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.util.collection.ExternalSorter;
import scala.Option;
import scala.math.Ordering;

/**
 * Creates Spark's sorters on every supported version. Since Spark 4.1 the constructor takes row
 * checksums too; these sorters have none.
 *
 * <p>Thread-safety: stateless.
 */
public final class ExternalSorters {
  private static final MethodHandle NEW = find();

  private ExternalSorters() {}

  /**
   * Creates a sorter for one task, which stops it.
   *
   * @param aggregator combines the values of a key, if given
   * @param partitioner separates the records by partition, if given
   * @param ordering of the keys of a partition, if given
   * @param serializer of records that the sorter spills
   */
  @SuppressWarnings("unchecked")
  public static <K, V, C> ExternalSorter<K, V, C> create(
      TaskContext context,
      Option<Aggregator<K, V, C>> aggregator,
      Option<Partitioner> partitioner,
      Option<Ordering<K>> ordering,
      Serializer serializer) {
    try {
      return (ExternalSorter<K, V, C>)
          (ExternalSorter<?, ?, ?>)
              NEW.invokeExact(context, aggregator, partitioner, ordering, serializer);
    } catch (Throwable e) {
      throw Reflection.rethrow(e);
    }
  }

  private static MethodHandle find() {
    try {
      Constructor<?> constructor = ExternalSorter.class.getConstructors()[0];
      MethodHandle made = MethodHandles.publicLookup().unreflectConstructor(constructor);
      MethodType common =
          MethodType.methodType(
              ExternalSorter.class,
              TaskContext.class,
              Option.class,
              Option.class,
              Option.class,
              Serializer.class);
      int parameters = common.parameterCount();
      if (constructor.getParameterCount() > parameters) {
        Class<?> checksums = constructor.getParameterTypes()[parameters];
        Object none = Array.newInstance(checksums.getComponentType(), 0);
        made = MethodHandles.insertArguments(made, parameters, none);
      }
      return made.asType(common);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }
}
