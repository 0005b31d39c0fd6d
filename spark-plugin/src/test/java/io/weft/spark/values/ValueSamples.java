package io.weft.spark.values;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.sql.Date;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.Period;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.GenericRow;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.None$;
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
import scala.collection.immutable.HashMap$;
import scala.collection.immutable.HashSet$;
import scala.collection.immutable.List$;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Set$;
import scala.collection.immutable.Vector$;
import scala.collection.mutable.ArrayBuffer$;
import scala.collection.mutable.ArraySeq$;
import scala.collection.mutable.Builder;
import scala.collection.mutable.ListBuffer$;
import scala.math.BigInt;
import scala.runtime.BoxedUnit;

/** Random objects of all known types. */
final class ValueSamples {
  static final StructType SCHEMA =
      new StructType().add("id", DataTypes.LongType).add("text", DataTypes.StringType);

  private static final int[] SIZES = {0, 1, 2, 3, 4, 5, 7, 16, 33};

  /** Makes an object from random numbers; containers take their elements from the second one. */
  private interface Sample {
    Object of(SplittableRandom random, Function<SplittableRandom, Object> element);
  }

  private static final List<Sample> PLAIN =
      List.of(
          (r, e) -> null,
          (r, e) -> text(r),
          (r, e) -> r.nextLong() >> r.nextInt(64),
          (r, e) -> r.nextInt() >> r.nextInt(32),
          (r, e) -> Double.longBitsToDouble(r.nextLong()),
          (r, e) -> List.of(Double.NaN, -0.0, Double.NEGATIVE_INFINITY).get(r.nextInt(3)),
          (r, e) -> Float.intBitsToFloat(r.nextInt()),
          (r, e) -> (short) r.nextInt(),
          (r, e) -> (byte) r.nextInt(),
          (r, e) -> (char) r.nextInt(),
          (r, e) -> r.nextBoolean(),
          (r, e) -> new BigInteger(bytes(r)),
          (r, e) -> new BigDecimal(new BigInteger(bytes(r)), r.nextInt(-400, 400)),
          (r, e) -> BigInt.apply(new BigInteger(bytes(r))),
          (r, e) -> new scala.math.BigDecimal(BigDecimal.valueOf(r.nextLong()), context(r)),
          (r, e) -> new UUID(r.nextLong(), r.nextLong()),
          (r, e) -> new java.util.Date(r.nextLong()),
          (r, e) -> new Date(r.nextLong()),
          (r, e) -> timestamp(r),
          (r, e) -> Instant.ofEpochSecond(r.nextInt(), r.nextInt(1_000_000_000)),
          (r, e) -> List.of(Instant.MIN, Instant.MAX).get(r.nextInt(2)),
          (r, e) -> LocalDate.ofEpochDay(r.nextInt()),
          (r, e) -> LocalTime.ofNanoOfDay(r.nextLong(LocalTime.MAX.toNanoOfDay() + 1)),
          (r, e) -> List.of(LocalDateTime.MIN, LocalDateTime.MAX).get(r.nextInt(2)),
          (r, e) -> Duration.ofSeconds(r.nextLong(), r.nextInt(1_000_000_000)),
          (r, e) -> Period.of(r.nextInt(), r.nextInt(), r.nextInt()),
          (r, e) -> BoxedUnit.UNIT,
          (r, e) -> None$.MODULE$,
          (r, e) -> bytes(r),
          (r, e) -> new Tuple2$mcII$sp(r.nextInt(), r.nextInt()),
          (r, e) -> new Tuple2$mcIJ$sp(r.nextInt(), r.nextLong()),
          (r, e) -> new Tuple2$mcID$sp(r.nextInt(), r.nextDouble()),
          (r, e) -> new Tuple2$mcJI$sp(r.nextLong(), r.nextInt()),
          (r, e) -> new Tuple2$mcJJ$sp(r.nextLong(), r.nextLong()),
          (r, e) -> new Tuple2$mcJD$sp(r.nextLong(), r.nextDouble()),
          (r, e) -> new Tuple2$mcDI$sp(r.nextDouble(), r.nextInt()),
          (r, e) -> new Tuple2$mcDJ$sp(r.nextDouble(), r.nextLong()),
          (r, e) -> new Tuple2$mcDD$sp(r.nextDouble(), r.nextDouble()),
          (r, e) -> array(r, new short[size(r)]),
          (r, e) -> array(r, new char[size(r)]),
          (r, e) -> array(r, new int[size(r)]),
          (r, e) -> array(r, new long[size(r)]),
          (r, e) -> array(r, new float[size(r)]),
          (r, e) -> array(r, new double[size(r)]),
          (r, e) -> array(r, new boolean[size(r)]),
          (r, e) -> IntStream.range(0, size(r)).mapToObj(i -> text(r)).toArray(String[]::new));

  private static final List<Sample> NESTED =
      List.of(
          (r, e) -> objects(r, e),
          (r, e) -> new ArrayList<>(Arrays.asList(objects(r, e))),
          (r, e) -> new Tuple1<>(e.apply(r)),
          (r, e) -> new Tuple2<>(e.apply(r), e.apply(r)),
          (r, e) -> new Tuple3<>(e.apply(r), e.apply(r), e.apply(r)),
          (r, e) -> new Tuple4<>(e.apply(r), e.apply(r), e.apply(r), e.apply(r)),
          (r, e) -> new Tuple5<>(e.apply(r), e.apply(r), e.apply(r), e.apply(r), e.apply(r)),
          (r, e) -> new Some<>(e.apply(r)),
          (r, e) -> new GenericRow(objects(r, e)),
          (r, e) -> new GenericRowWithSchema(new Object[] {e.apply(r), e.apply(r)}, SCHEMA),
          (r, e) -> ArraySeq$.MODULE$.make(objects(r, e)),
          (r, e) -> ArraySeq$.MODULE$.make(array(r, new long[size(r)])),
          (r, e) -> ArraySeq$.MODULE$.make(array(r, new boolean[size(r)])),
          (r, e) -> wrapped(objects(r, e)),
          (r, e) -> wrapped(array(r, new double[size(r)])),
          (r, e) -> wrapped(array(r, new char[size(r)])),
          (r, e) -> collection(List$.MODULE$.newBuilder(), r, e),
          (r, e) -> collection(Vector$.MODULE$.newBuilder(), r, e),
          (r, e) -> collection(Set$.MODULE$.newBuilder(), r, ValueSamples::text),
          (r, e) -> collection(HashSet$.MODULE$.newBuilder(), r, SplittableRandom::nextLong),
          (r, e) -> collection(ArrayBuffer$.MODULE$.newBuilder(), r, e),
          (r, e) -> collection(ListBuffer$.MODULE$.newBuilder(), r, e),
          (r, e) -> map(Map$.MODULE$.newBuilder(), r, e),
          (r, e) -> map(HashMap$.MODULE$.newBuilder(), r, e));

  private ValueSamples() {}

  static int kinds() {
    return PLAIN.size() + NESTED.size();
  }

  /** An object of one kind. */
  static Object of(int kind, SplittableRandom random, int depth) {
    Sample sample = kind < PLAIN.size() ? PLAIN.get(kind) : NESTED.get(kind - PLAIN.size());
    return sample.of(random, r -> any(r, depth - 1));
  }

  /** An object of any kind. */
  static Object any(SplittableRandom random, int depth) {
    return of(random.nextInt(depth > 0 ? kinds() : PLAIN.size()), random, depth);
  }

  private static int size(SplittableRandom random) {
    return SIZES[random.nextInt(SIZES.length)];
  }

  private static byte[] bytes(SplittableRandom random) {
    byte[] bytes = new byte[1 + size(random)];
    random.nextBytes(bytes);
    return bytes;
  }

  /** Texts of Latin-1, others, halves of surrogate pairs, and long ones. */
  static String text(SplittableRandom random) {
    int length = random.nextInt(100) == 0 ? random.nextInt(300) : size(random);
    int characters = new int[] {128, 256, 1 << 16}[random.nextInt(3)];
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < length; i++) {
      text.append((char) random.nextInt(characters));
    }
    return text.toString();
  }

  private static MathContext context(SplittableRandom random) {
    return random.nextBoolean() ? MathContext.DECIMAL128 : MathContext.UNLIMITED;
  }

  private static Timestamp timestamp(SplittableRandom random) {
    Timestamp time = new Timestamp(random.nextInt() * 1000L);
    time.setNanos(random.nextInt(1_000_000_000));
    return time;
  }

  private static <T> T array(SplittableRandom random, T array) {
    for (int i = 0; i < java.lang.reflect.Array.getLength(array); i++) {
      if (array instanceof boolean[] booleans) {
        booleans[i] = random.nextBoolean();
      } else if (array instanceof char[] chars) {
        chars[i] = (char) random.nextInt();
      } else {
        java.lang.reflect.Array.setByte(array, i, (byte) random.nextInt());
      }
    }
    return array;
  }

  private static Object[] objects(SplittableRandom random, Function<SplittableRandom, Object> of) {
    return IntStream.range(0, size(random)).mapToObj(i -> of.apply(random)).toArray();
  }

  private static Object wrapped(Object array) {
    return scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(array);
  }

  @SuppressWarnings("unchecked")
  private static Object collection(
      Builder<?, ?> builder, SplittableRandom random, Function<SplittableRandom, Object> of) {
    Builder<Object, ?> objects = (Builder<Object, ?>) builder;
    for (int left = size(random); left > 0; left--) {
      objects.addOne(of.apply(random));
    }
    return objects.result();
  }

  @SuppressWarnings("unchecked")
  private static Object map(
      Builder<?, ?> builder, SplittableRandom random, Function<SplittableRandom, Object> of) {
    Builder<Object, ?> entries = (Builder<Object, ?>) builder;
    for (int left = size(random); left > 0; left--) {
      entries.addOne(new Tuple2<>(text(random), of.apply(random)));
    }
    return entries.result();
  }
}
