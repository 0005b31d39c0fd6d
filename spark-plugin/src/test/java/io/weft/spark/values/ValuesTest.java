package io.weft.spark.values;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.weft.memory.Memory;
import io.weft.spark.values.ValueReader.CorruptValueException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.ByteBuffer;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.lifecycle.AfterProperty;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.GenericRow;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import scala.Product;
import scala.Some;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.List$;
import scala.collection.mutable.ArraySeq$;
import scala.collection.mutable.Builder;
import scala.reflect.ClassTag;

/** Known values are read as Java's serialization reads them: equal, and of the same classes. */
class ValuesTest {
  private static final int BYTES = 1 << 20;
  private static final SerializerInstance JAVA =
      new JavaSerializer(new SparkConf(false)).newInstance();
  private static final Function<Object, ByteBuffer> WRITE_SCHEMA =
      schema -> JAVA.serialize(schema, ClassTag.Any());
  private static final Function<ByteBuffer, Object> READ_SCHEMA =
      bytes -> JAVA.deserialize(bytes, ClassTag.Any());

  private final ValueWriter writer = new ValueWriter(WRITE_SCHEMA);
  private final ValueReader reader = new ValueReader(READ_SCHEMA);
  private final long memory = Memory.allocate(BYTES);

  @AfterEach
  @AfterProperty
  void free() {
    Memory.free(memory);
  }

  @Property(tries = 3000, shrinking = ShrinkingMode.OFF)
  void recordsAreReadAsByJava(@ForAll long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    for (int kind = 0; kind < ValueSamples.kinds(); kind += 1 + random.nextInt(20)) {
      Object key = ValueSamples.any(random, 0);
      Object value = ValueSamples.of(kind, random, 2);
      long end = writer.write(memory, memory + BYTES, 0, key, value);
      assertThat(end).as("kind " + kind).isGreaterThan(memory);
      reader.open(memory, end);
      assertSame(reader.next(), new Tuple2<>(java(key), java(value)));
      assertThat(reader.hasNext()).isFalse();
      assertRoomIsChecked(end, key, value);
    }
  }

  /** With less room the writer writes nothing behind it, and a cut record is refused. */
  private void assertRoomIsChecked(long end, Object key, Object value) {
    reader.open(memory, end - 1);
    assertThatThrownBy(reader::next).isInstanceOf(CorruptValueException.class);
    Memory.putByte(end - 1, (byte) 77);
    // The writer itself might have a large object of the record before.
    ValueWriter next = new ValueWriter(WRITE_SCHEMA);
    assertThat(next.write(memory, end - 1, 0, key, value)).isEqualTo(ValueWriter.NO_ROOM);
    assertThat(Memory.getByte(end - 1)).isEqualTo((byte) 77);
  }

  private static Object java(Object value) {
    return JAVA.deserialize(JAVA.serialize(value, ClassTag.Any()), ClassTag.Any());
  }

  /** Compares classes and contents, also within containers. */
  private static void assertSame(Object actual, Object expected) {
    if (expected == null) {
      assertThat(actual).isNull();
      return;
    }
    assertThat(actual.getClass()).isSameAs(expected.getClass());
    if (expected.getClass().isArray()) {
      assertThat(Array.getLength(actual)).isEqualTo(Array.getLength(expected));
      for (int i = 0; i < Array.getLength(expected); i++) {
        assertSame(Array.get(actual, i), Array.get(expected, i));
      }
    } else if (expected instanceof ArrayList<?> list) {
      assertSame(((ArrayList<?>) actual).toArray(), list.toArray());
    } else if (expected instanceof Row row) {
      assertThat(((Row) actual).schema()).isEqualTo(row.schema());
      assertAllSame(((Row) actual).toSeq().iterator(), row.toSeq().iterator());
    } else if (expected instanceof scala.collection.Iterable<?> elements) {
      assertAllSame(((scala.collection.Iterable<?>) actual).iterator(), elements.iterator());
    } else if (expected instanceof Product product
        && !(expected instanceof scala.collection.Seq<?>)) {
      assertAllSame(((Product) actual).productIterator(), product.productIterator());
    } else {
      assertThat(actual).isEqualTo(expected);
    }
    if (expected instanceof scala.math.BigDecimal number) {
      assertThat(((scala.math.BigDecimal) actual).mc()).isEqualTo(number.mc());
      assertThat(((scala.math.BigDecimal) actual).bigDecimal()).isEqualTo(number.bigDecimal());
    }
  }

  private static void assertAllSame(Iterator<?> actual, Iterator<?> expected) {
    while (expected.hasNext()) {
      assertSame(actual.next(), expected.next());
    }
    assertThat(actual.hasNext()).isFalse();
  }

  static Stream<String> texts() {
    return Stream.of(
        "x".repeat(127),
        "é".repeat(254),
        "y".repeat(255),
        "\ud800",
        "\udc00\ud800 halves",
        "pair 😀",
        "ж".repeat(70_000),
        "latin ÿ".repeat(30_000));
  }

  @ParameterizedTest
  @MethodSource("texts")
  void textsOfAllLengths(String text) {
    assertThat(copy(text)).isEqualTo(text);
  }

  /** There is one object for each of them, which says nothing about a record. */
  @Test
  void emptyCollectionsMayRepeat() {
    int[] none = {};
    Object array = ArraySeq$.MODULE$.empty(ClassTag.Any());
    Object list = builder().result();
    Object row = new GenericRow(new Object[] {list, none, array, none, list, array});
    assertSame(copy(row), row);
  }

  @Test
  void aListOfManyElementsNeedsNoDeepStack() {
    Builder<Object, ?> numbers = builder();
    IntStream.range(0, 100_000).forEach(numbers::addOne);
    Object list = numbers.result();
    assertThat(copy(list)).isEqualTo(list);
  }

  @SuppressWarnings("unchecked")
  private static Builder<Object, ?> builder() {
    return (Builder<Object, ?>) (Builder<?, ?>) List$.MODULE$.newBuilder();
  }

  /** A class of a program. */
  private static final class OwnRow extends GenericRow {
    private static final long serialVersionUID = 1L;

    OwnRow() {
      super(new Object[] {1});
    }
  }

  /** A class of a program. */
  private record Own(int number) {}

  static Stream<Named<Object>> unknown() {
    byte[] twice = new byte[3];
    List<Integer> growing = new ArrayList<>();
    String longText = "long ".repeat(50);
    Row row = new GenericRow(new Object[] {1});
    Object[] fields = {1};
    Timestamp time = new Timestamp(5);
    Object deep = 1;
    for (int i = 0; i < 2 * ValueWriter.MAX_DEPTH; i++) {
      deep = new Some<>(deep);
    }
    return Stream.of(
        Named.of("a program's class", new Own(1)),
        Named.of("a subclass of a row", new OwnRow()),
        Named.of("a subclass of a date", new Date(3) {}),
        Named.of("a subclass of a list", new ArrayList<>() {}),
        Named.of("within a tuple", new Tuple2<>(1, new Own(1))),
        Named.of("within a row", new GenericRow(new Object[] {"a", new Own(2)})),
        Named.of("an array of a class", new Own[0]),
        Named.of("an array of numbers", new Integer[] {1}),
        Named.of("a row without its schema", new GenericRowWithSchema(new Object[] {1}, null)),
        Named.of(
            "a number of another precision",
            new scala.math.BigDecimal(BigDecimal.ONE, new MathContext(3))),
        Named.of("an array twice", new Tuple2<>(twice, twice)),
        Named.of("a date twice", new GenericRow(new Object[] {time, time})),
        Named.of("a long text twice", new Tuple2<>(longText, new Some<>(longText))),
        Named.of("a row twice", new Object[] {row, row}),
        Named.of("a row and its fields", new Tuple2<>(fields, new GenericRow(fields))),
        Named.of("two rows of the same fields", rowsOf(fields)),
        Named.of("an empty list that can grow, twice", new Tuple2<>(growing, growing)),
        Named.of("far apart", farApart()),
        Named.of("nested too deep", deep));
  }

  private static Object[] rowsOf(Object[] fields) {
    return new Object[] {
      new GenericRow(fields), new GenericRowWithSchema(fields, ValueSamples.SCHEMA)
    };
  }

  private static Object[] farApart() {
    Object[] arrays = IntStream.range(0, 100).mapToObj(i -> new int[i]).toArray();
    arrays[99] = arrays[40];
    return arrays;
  }

  @ParameterizedTest
  @MethodSource("unknown")
  void othersAreRefused(Object value) {
    assertThat(writer.write(memory, memory + BYTES, 0, 1, value)).isEqualTo(ValueWriter.UNKNOWN);
    assertThat(copy("the next")).isEqualTo("the next");
  }

  @Test
  void keyAndValueShareNoArray() {
    int[] array = {1};
    assertThat(writer.write(memory, memory + BYTES, 0, array, array))
        .isEqualTo(ValueWriter.UNKNOWN);
  }

  /** Java's serialization would refer to it. */
  @Test
  void aLargeObjectOfTheRecordBeforeIsRefused() {
    double[] large = new double[200];
    double[] small = new double[20];
    assertThat(copy(large)).isEqualTo(large);
    assertThat(writer.write(memory, memory + BYTES, 0, 2, large)).isEqualTo(ValueWriter.UNKNOWN);
    assertThat(copy(small)).isEqualTo(small);
    assertThat(copy(small)).isEqualTo(small);
    assertThat(copy(large)).isEqualTo(large);
  }

  static Stream<Named<Object>> largeContainers() {
    Object[] numbers = IntStream.range(0, 300).boxed().toArray();
    return Stream.of(
        Named.of("list", new ArrayList<>(Arrays.asList(numbers))),
        Named.of("list of Scala", wrapped(numbers).toList()),
        Named.of("set", wrapped(numbers).toSet()),
        Named.of("row", new GenericRow(numbers)),
        Named.of("row with a schema", new GenericRowWithSchema(numbers, ValueSamples.SCHEMA)));
  }

  private static scala.collection.immutable.ArraySeq<Object> wrapped(Object[] array) {
    return scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(array);
  }

  /** A program may add one list to all of its records. */
  @ParameterizedTest
  @MethodSource("largeContainers")
  void aLargeContainerOfTheRecordBeforeIsRefused(Object large) {
    assertSame(copy(new Tuple2<>(1, large)), new Tuple2<>(1, large));
    assertThat(writer.write(memory, memory + BYTES, 0, 2, new Tuple2<>(2, new Some<>(large))))
        .isEqualTo(ValueWriter.UNKNOWN);
    Object small = new Some<>(builder().result());
    assertThat(copy(small)).isEqualTo(small);
    assertThat(copy(small)).isEqualTo(small);
    assertSame(copy(large), large);
  }

  @Test
  void rowsOfAChunkShareItsSchemas() {
    StructType other = new StructType().add("other", DataTypes.StringType);
    List<Row> rows = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      StructType schema = i % 7 == 3 ? other : ValueSamples.SCHEMA;
      rows.add(new GenericRowWithSchema(new Object[] {(long) i, "row"}, schema));
    }
    long end = write(rows);
    assertThat(end - memory).isLessThan(50 * 30 + 4000);
    List<Object> read = readAll(end);
    assertThat(read).isEqualTo(rows);
    assertThat(((Row) read.get(1)).schema()).isEqualTo(ValueSamples.SCHEMA);
    assertThat(((Row) read.get(0)).schema()).isSameAs(((Row) read.get(49)).schema());
    assertThat(((Row) read.get(3)).schema()).isEqualTo(other);
    // The next chunk has the schema again, which the reader knows already.
    assertThat(((Row) readAll(write(rows)).get(0)).schema()).isSameAs(((Row) read.get(0)).schema());
  }

  @Test
  void moreSchemasThanTheTableHoldsAreRefused() {
    for (int i = 0; i < SchemaTable.SIZE; i++) {
      assertThat(copy(rowOf("column " + i))).isEqualTo(rowOf("column " + i));
    }
    assertThat(writer.write(memory, memory + BYTES, 0, 1, rowOf("one more")))
        .isEqualTo(ValueWriter.UNKNOWN);
    assertThat(copy(rowOf("column 3"))).isEqualTo(rowOf("column 3"));
  }

  @Test
  void aSchemaThatCannotBeWrittenIsRefused() {
    ValueWriter failing =
        new ValueWriter(
            schema -> {
              throw new IllegalStateException("not serializable");
            });
    assertThat(failing.write(memory, memory + BYTES, 0, 1, rowOf("a")))
        .isEqualTo(ValueWriter.UNKNOWN);
  }

  /** Equal for Spark if only their parameters differ, as their class is the same. */
  private static final class SizedType extends UserDefinedType<Object> {
    private static final long serialVersionUID = 1L;
    private final int size;

    SizedType(int size) {
      this.size = size;
    }

    @Override
    public DataType sqlType() {
      return DataTypes.createDecimalType(size, 0);
    }

    @Override
    public Object serialize(Object value) {
      return value;
    }

    @Override
    public Object deserialize(Object stored) {
      return stored;
    }

    @Override
    public Class<Object> userClass() {
      return Object.class;
    }
  }

  @Test
  void schemasWithTypesOfAProgramAreNotMixedUp() {
    List<Row> rows = new ArrayList<>();
    for (int size : new int[] {5, 7, 5}) {
      StructType schema =
          new StructType().add("nested", DataTypes.createArrayType(new SizedType(size)));
      rows.add(new GenericRowWithSchema(new Object[] {1}, schema));
    }
    assertThat(rows.get(0).schema()).isEqualTo(rows.get(1).schema());
    List<Object> read = readAll(write(rows));
    for (int i = 0; i < rows.size(); i++) {
      assertThat(sqlType((Row) read.get(i))).isEqualTo(sqlType(rows.get(i)));
    }
  }

  private static DataType sqlType(Row row) {
    ArrayType nested = (ArrayType) row.schema().apply(0).dataType();
    return ((SizedType) nested.elementType()).sqlType();
  }

  @Test
  void changedBytesOfASchemaAreRefused() {
    long end = writer.write(memory, memory + BYTES, 0, null, rowOf("a"));
    // Behind null, the row's code, the schema's number and its length.
    Memory.putByte(memory + 3 + Integer.BYTES, (byte) 1);
    reader.open(memory, end);
    assertThatThrownBy(reader::next).isInstanceOf(CorruptValueException.class);
  }

  /** Each of the nested arrays claims to fill the rest of the chunk. */
  @Test
  void forgedLengthsOfNestedArraysTakeLittleMemory() {
    long end = memory + BYTES;
    Memory.putByte(memory, ValueType.NULL);
    long at = memory + 1;
    for (int depth = 0; depth < ValueWriter.MAX_DEPTH; depth++) {
      Memory.putByte(at, (byte) (depth % 2 == 0 ? 28 : 60));
      Memory.putByte(at + 1, (byte) ValueWriter.LONG_LENGTH);
      at += 2 + Integer.BYTES;
      Memory.putInt(at - Integer.BYTES, (int) (end - at));
    }
    Memory.putByte(at, (byte) 127);
    reader.open(memory, end);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    assertThatThrownBy(reader::next).isInstanceOf(CorruptValueException.class);
    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(32L * BYTES);
  }

  private static Row rowOf(String column) {
    StructType schema = new StructType().add(column, DataTypes.IntegerType);
    return new GenericRowWithSchema(new Object[] {1}, schema);
  }

  /** Writes a chunk of records with these values. */
  private long write(List<?> values) {
    long at = memory;
    int defined = 0;
    for (Object value : values) {
      at = writer.write(at, memory + BYTES, defined, null, value);
      assertThat(at).isGreaterThan(memory);
      defined = writer.defined();
    }
    return at;
  }

  private List<Object> readAll(long end) {
    reader.open(memory, end);
    List<Object> values = new ArrayList<>();
    while (reader.hasNext()) {
      values.add(reader.next()._2());
    }
    return values;
  }

  private Object copy(Object value) {
    return readAll(write(Arrays.asList(value))).get(0);
  }
}
