package io.weft.spark.values;

import static io.weft.spark.values.ValueType.exact;

import io.weft.spark.values.ValueType.RefusedException;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.GenericRow;
import scala.None$;
import scala.Product;
import scala.Some;
import scala.Tuple1;
import scala.Tuple2;
import scala.Tuple2$mcDD$sp;
import scala.Tuple2$mcDI$sp;
import scala.Tuple2$mcDJ$sp;
import scala.Tuple2$mcID$sp;
import scala.Tuple2$mcII$sp;
import scala.Tuple2$mcIJ$sp;
import scala.Tuple2$mcJD$sp;
import scala.Tuple2$mcJI$sp;
import scala.Tuple2$mcJJ$sp;
import scala.Tuple3;
import scala.Tuple4;
import scala.Tuple5;
import scala.collection.Iterable;
import scala.collection.Iterator;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.HashMap;
import scala.collection.immutable.HashMap$;
import scala.collection.immutable.HashSet;
import scala.collection.immutable.HashSet$;
import scala.collection.immutable.List$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Set;
import scala.collection.immutable.Set$;
import scala.collection.immutable.Vector$;
import scala.collection.immutable.Vector0$;
import scala.collection.immutable.Vector1;
import scala.collection.immutable.Vector2;
import scala.collection.immutable.Vector3;
import scala.collection.immutable.Vector4;
import scala.collection.immutable.Vector5;
import scala.collection.immutable.Vector6;
import scala.collection.mutable.ArrayBuffer;
import scala.collection.mutable.ArrayBuffer$;
import scala.collection.mutable.ArraySeq;
import scala.collection.mutable.ArraySeq$;
import scala.collection.mutable.Builder;
import scala.collection.mutable.Growable;
import scala.collection.mutable.ListBuffer;
import scala.collection.mutable.ListBuffer$;
import scala.math.BigInt;
import scala.runtime.BoxedUnit;

/** Tuples, numbers and collections of Scala, and Spark's rows without a schema. */
final class ScalaTypes {
  /** Numbers of another context are refused. */
  private static final List<MathContext> CONTEXTS =
      List.of(
          MathContext.DECIMAL128,
          MathContext.UNLIMITED,
          MathContext.DECIMAL64,
          MathContext.DECIMAL32);

  private ScalaTypes() {}

  static List<ValueType<?>> all() {
    List<ValueType<?>> types = new ArrayList<>();
    types.addAll(collections());
    types.addAll(arraySequences());
    types.addAll(tuples());
    types.addAll(pairsOfNumbers());
    types.addAll(numbers());
    types.add(exact(70, None$.class, (out, none) -> {}, in -> None$.MODULE$));
    types.add(
        ScalaTypes.<Some<Object>>type(
            71,
            List.of(Some.class),
            (out, some) -> out.write(some.value()),
            in -> new Some<>(in.read())));
    types.add(exact(72, BoxedUnit.class, (out, unit) -> {}, in -> BoxedUnit.UNIT));
    types.add(
        exact(73, GenericRow.class, ScalaTypes::write, in -> new GenericRow(in.readFields())));
    return types;
  }

  private static <T> ValueType<T> type(
      int code, List<Class<?>> classes, ValueType.Write<T> write, ValueType.Read<T> read) {
    return new ValueType<>(code, classes, write, read);
  }

  private static void write(ValueWriter out, GenericRow row) throws RefusedException {
    // Other rows, or the record itself, may have the same array.
    out.once(row.values(), 0);
    int fields = row.length();
    out.putLength(fields);
    for (int i = 0; i < fields; i++) {
      out.write(row.get(i));
    }
  }

  private static List<ValueType<?>> numbers() {
    return List.of(
        exact(
            74,
            BigInt.class,
            (out, number) -> JavaTypes.write(out, number.bigInteger()),
            in -> BigInt.apply(JavaTypes.readInteger(in))),
        exact(
            75,
            scala.math.BigDecimal.class,
            (out, number) -> {
              int context = CONTEXTS.indexOf(number.mc());
              if (context < 0) {
                throw RefusedException.unknown();
              }
              out.putByte((byte) context);
              JavaTypes.write(out, number.bigDecimal());
            },
            in -> {
              MathContext context = CONTEXTS.get(in.getByte());
              return new scala.math.BigDecimal(JavaTypes.readDecimal(in), context);
            }));
  }

  private static List<ValueType<?>> tuples() {
    return List.of(
        tuple(80, Tuple1.class, 1, v -> new Tuple1<>(v[0])),
        tuple(81, Tuple2.class, 2, v -> new Tuple2<>(v[0], v[1])),
        tuple(82, Tuple3.class, 3, v -> new Tuple3<>(v[0], v[1], v[2])),
        tuple(83, Tuple4.class, 4, v -> new Tuple4<>(v[0], v[1], v[2], v[3])),
        tuple(84, Tuple5.class, 5, v -> new Tuple5<>(v[0], v[1], v[2], v[3], v[4])));
  }

  private static ValueType<Product> tuple(
      int code, Class<?> type, int length, Function<Object[], Product> create) {
    return type(
        code,
        List.of(type),
        (out, tuple) -> {
          for (int i = 0; i < length; i++) {
            out.write(tuple.productElement(i));
          }
        },
        in -> {
          Object[] elements = new Object[length];
          for (int i = 0; i < length; i++) {
            elements[i] = in.read();
          }
          return create.apply(elements);
        });
  }

  /** What Scala makes of pairs of unboxed numbers. */
  private static List<ValueType<?>> pairsOfNumbers() {
    return List.of(
        pair(90, Tuple2$mcII$sp.class, (k, v) -> new Tuple2$mcII$sp((Integer) k, (Integer) v)),
        pair(91, Tuple2$mcIJ$sp.class, (k, v) -> new Tuple2$mcIJ$sp((Integer) k, (Long) v)),
        pair(92, Tuple2$mcID$sp.class, (k, v) -> new Tuple2$mcID$sp((Integer) k, (Double) v)),
        pair(93, Tuple2$mcJI$sp.class, (k, v) -> new Tuple2$mcJI$sp((Long) k, (Integer) v)),
        pair(94, Tuple2$mcJJ$sp.class, (k, v) -> new Tuple2$mcJJ$sp((Long) k, (Long) v)),
        pair(95, Tuple2$mcJD$sp.class, (k, v) -> new Tuple2$mcJD$sp((Long) k, (Double) v)),
        pair(96, Tuple2$mcDI$sp.class, (k, v) -> new Tuple2$mcDI$sp((Double) k, (Integer) v)),
        pair(97, Tuple2$mcDJ$sp.class, (k, v) -> new Tuple2$mcDJ$sp((Double) k, (Long) v)),
        pair(98, Tuple2$mcDD$sp.class, (k, v) -> new Tuple2$mcDD$sp((Double) k, (Double) v)));
  }

  private static ValueType<Tuple2<?, ?>> pair(
      int code, Class<?> type, BiFunction<Object, Object, Tuple2<?, ?>> create) {
    return type(
        code,
        List.of(type),
        (out, pair) -> {
          out.write(pair._1());
          out.write(pair._2());
        },
        in -> {
          Object first = in.read();
          return create.apply(first, in.read());
        });
  }

  /** Collections that are built again from their elements, as by Java's serialization. */
  private static List<ValueType<?>> collections() {
    List<ValueType<?>> types = new ArrayList<>();
    types.add(
        collection(
            100,
            List.of(Nil$.class, $colon$colon.class),
            () -> builder(List$.MODULE$.newBuilder())));
    types.add(
        collection(
            101,
            List.of(
                Vector0$.class,
                Vector1.class,
                Vector2.class,
                Vector3.class,
                Vector4.class,
                Vector5.class,
                Vector6.class),
            () -> builder(Vector$.MODULE$.newBuilder())));
    types.add(
        collection(
            102,
            List.of(
                Set$.MODULE$.empty().getClass(),
                Set.Set1.class,
                Set.Set2.class,
                Set.Set3.class,
                Set.Set4.class),
            () -> builder(Set$.MODULE$.newBuilder())));
    types.add(
        collection(103, List.of(HashSet.class), () -> builder(HashSet$.MODULE$.newBuilder())));
    types.add(
        collection(
            104, List.of(ArrayBuffer.class), () -> builder(ArrayBuffer$.MODULE$.newBuilder())));
    types.add(
        collection(
            105, List.of(ListBuffer.class), () -> builder(ListBuffer$.MODULE$.newBuilder())));
    types.add(
        map(
            106,
            List.of(
                Map$.MODULE$.empty().getClass(),
                Map.Map1.class,
                Map.Map2.class,
                Map.Map3.class,
                Map.Map4.class),
            () -> builder(Map$.MODULE$.newBuilder())));
    types.add(map(107, List.of(HashMap.class), () -> builder(HashMap$.MODULE$.newBuilder())));
    return types;
  }

  @SuppressWarnings("unchecked")
  private static Builder<Object, Iterable<?>> builder(Builder<?, ?> builder) {
    return (Builder<Object, Iterable<?>>) builder;
  }

  private static ValueType<Iterable<?>> collection(
      int code, List<Class<?>> classes, Supplier<Builder<Object, Iterable<?>>> builder) {
    return type(
        code,
        classes,
        (out, elements) -> {
          onceUnlessNothing(out, elements);
          out.putLength(elements.size());
          Iterator<?> iterator = elements.iterator();
          while (iterator.hasNext()) {
            out.write(iterator.next());
          }
        },
        in -> {
          Builder<Object, Iterable<?>> elements = builder.get();
          for (int left = in.getLength(1); left > 0; left--) {
            elements.addOne(in.read());
          }
          return elements.result();
        });
  }

  /** Scala has one object for all empty collections of a class, unless they can grow. */
  private static void onceUnlessNothing(ValueWriter out, Iterable<?> elements)
      throws RefusedException {
    if (elements instanceof Growable<?> || !elements.isEmpty()) {
      out.once(elements, 0);
    }
  }

  private static ValueType<Iterable<?>> map(
      int code, List<Class<?>> classes, Supplier<Builder<Object, Iterable<?>>> builder) {
    return type(
        code,
        classes,
        (out, map) -> {
          onceUnlessNothing(out, map);
          out.putLength(map.size());
          Iterator<?> entries = map.iterator();
          while (entries.hasNext()) {
            Tuple2<?, ?> entry = (Tuple2<?, ?>) entries.next();
            out.write(entry._1());
            out.write(entry._2());
          }
        },
        in -> {
          Builder<Object, Iterable<?>> entries = builder.get();
          for (int left = in.getLength(2); left > 0; left--) {
            Object key = in.read();
            entries.addOne(new Tuple2<>(key, in.read()));
          }
          return entries.result();
        });
  }

  /** Sequences around an array of a known class, which rows have for columns of arrays. */
  private static List<ValueType<?>> arraySequences() {
    return List.of(
        ScalaTypes.<ArraySeq<?>>type(
            108,
            List.of(
                ArraySeq.ofRef.class,
                ArraySeq.ofByte.class,
                ArraySeq.ofShort.class,
                ArraySeq.ofChar.class,
                ArraySeq.ofInt.class,
                ArraySeq.ofLong.class,
                ArraySeq.ofFloat.class,
                ArraySeq.ofDouble.class,
                ArraySeq.ofBoolean.class),
            (out, elements) -> {
              onceUnlessNothing(out, elements);
              out.write(elements.array());
            },
            in -> ArraySeq$.MODULE$.make(in.read())),
        ScalaTypes.<scala.collection.immutable.ArraySeq<?>>type(
            109,
            List.of(
                scala.collection.immutable.ArraySeq.ofRef.class,
                scala.collection.immutable.ArraySeq.ofByte.class,
                scala.collection.immutable.ArraySeq.ofShort.class,
                scala.collection.immutable.ArraySeq.ofChar.class,
                scala.collection.immutable.ArraySeq.ofInt.class,
                scala.collection.immutable.ArraySeq.ofLong.class,
                scala.collection.immutable.ArraySeq.ofFloat.class,
                scala.collection.immutable.ArraySeq.ofDouble.class,
                scala.collection.immutable.ArraySeq.ofBoolean.class),
            (out, elements) -> {
              onceUnlessNothing(out, elements);
              out.write(elements.unsafeArray());
            },
            in -> scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(in.read())));
  }
}
