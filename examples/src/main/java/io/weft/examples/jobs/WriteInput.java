package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Writes the input of a workload as Parquet and returns the bytes of its data. The bytes are 8 for
 * a number, 4 for a float of a tensor and the length of a string; other kinds count their rows in
 * Spark's packed form. The same count gives the same rows.
 *
 * @param kind of rows
 * @param count of rows
 * @param folder the folder to write to; must not exist
 */
public record WriteInput(Kind kind, long count, String folder) implements SideTask<Long> {
  /** Kinds of rows. */
  public enum Kind {
    /** A key, four integers and four doubles of random bits. */
    NUMERIC,
    /** A key and four strings: a name, one of a thousand cities, a hash, a remark. */
    STRINGS,
    /** A key and a tensor of 1,024 floats. */
    TENSORS,
    /** A key and four strings of 1 to 8 bytes. */
    SHORT_STRINGS,
    /** Columns of all atomic types; a tenth of the values is null. */
    MIXED,
    /** A key, a struct, an array, a map and an array of structs; some are null. */
    NESTED,
    /** A key and 299 integers. */
    WIDE,
    /** As {@link #NUMERIC}, but nine of ten keys are the same. */
    HOT_KEY
  }

  /** The number of floats in a tensor. */
  public static final int TENSOR_FLOATS = 1024;

  private static final int FILES = 4;

  private static final String[] NUMBERS = {
    "xxhash64(id) as k",
    "xxhash64(id, 1) as a",
    "xxhash64(id, 2) as b",
    "xxhash64(id, 3) as c",
    "xxhash64(id, 4) as d",
    "xxhash64(id, 5) / 9.0e18D as w",
    "xxhash64(id, 6) / 9.0e18D as x",
    "xxhash64(id, 7) / 9.0e18D as y",
    "xxhash64(id, 8) / 9.0e18D as z"
  };

  private static final String[] STRINGS = {
    "xxhash64(id) as k",
    "concat('Customer#', lpad(cast(id as string), 9, '0')) as name",
    "concat('city of ', conv(cast(pmod(xxhash64(id, 1), 1000) * 1679616 as string), 10, 36)) as city",
    "md5(cast(id as string)) as hash",
    "concat_ws(' ', 'furiously', split('even ironic pending regular final special express bold'"
        + ", ' ')[cast(pmod(xxhash64(id, 2), 8) as int)], 'deposits of', cast(pmod(xxhash64(id, 3), 100000) as string),"
        + " 'accounts sleep') as remark"
  };

  private static final int WIDE_COLUMNS = 300;

  private static final List<String> MIXED =
      List.of(
          "id % 2 = 0",
          "cast(id as tinyint)",
          "cast(id as smallint)",
          "cast(id as int)",
          "xxhash64(id)",
          "cast(id / 3.0D as float)",
          "sqrt(id)",
          "date_add(date '2000-01-01', cast(id % 10000 as int))",
          "timestamp_micros(id * 1000003)",
          "cast(id % 10000000 / 100 as decimal(9, 2))",
          "cast(id / 100 as decimal(18, 4))",
          "cast(xxhash64(id) as decimal(38, 10))",
          "concat('value ', id)",
          "unhex(md5(cast(id as string)))");

  private static final String[] NESTED = {
    "xxhash64(id) as k",
    "if(id % 10 = 0, null, named_struct('a', id, 'b', concat('name ', id))) as pair",
    "if(id % 11 = 0, null, transform(sequence(1, cast(id % 8 as int) + 1), i -> id * i)) as list",
    "map('first', id, concat('key ', id % 100), id * id) as entries",
    "array(named_struct('x', id / 3.0D, 'y', id), named_struct('x', sqrt(id), 'y', null)) as points"
  };

  @Override
  public Long run(SparkSession session) {
    rows(session).write().parquet(folder);
    return switch (kind) {
      case NUMERIC, HOT_KEY -> count * NUMBERS.length * Long.BYTES;
      case STRINGS -> stringBytes(session);
      case TENSORS -> count * (Long.BYTES + TENSOR_FLOATS * Float.BYTES);
      case WIDE -> count * WIDE_COLUMNS * Long.BYTES;
      case SHORT_STRINGS, MIXED, NESTED ->
          new ShuffleJob.PackedBytes(new ShuffleJob.Source.Parquet(folder)).run(session);
    };
  }

  private Dataset<Row> rows(SparkSession session) {
    return switch (kind) {
      case NUMERIC -> session.range(0, count, 1, FILES).selectExpr(NUMBERS);
      case STRINGS -> session.range(0, count, 1, FILES).selectExpr(STRINGS);
      case TENSORS -> tensors(session);
      case SHORT_STRINGS -> session.range(0, count, 1, FILES).selectExpr(shortStrings());
      case MIXED -> session.range(0, count, 1, FILES).selectExpr(mixed());
      case NESTED -> session.range(0, count, 1, FILES).selectExpr(NESTED);
      case WIDE -> session.range(0, count, 1, FILES).selectExpr(wide());
      case HOT_KEY -> session.range(0, count, 1, FILES).selectExpr(hotKey());
    };
  }

  private static String[] shortStrings() {
    return columns(
        IntStream.rangeClosed(1, 4)
            .mapToObj(i -> "left(hex(xxhash64(id, " + i + ")), cast(id % 8 as int) + 1) as s" + i));
  }

  private static String[] mixed() {
    return columns(
        IntStream.range(0, MIXED.size())
            .mapToObj(
                i ->
                    String.format(
                        Locale.ROOT,
                        "if(pmod(xxhash64(id, %d), 10) = 0, null, %s) as c%d",
                        i,
                        MIXED.get(i),
                        i)));
  }

  private static String[] wide() {
    return columns(IntStream.range(1, WIDE_COLUMNS).mapToObj(i -> "id + " + i + " as c" + i));
  }

  private static String[] hotKey() {
    String[] columns = NUMBERS.clone();
    columns[0] = "if(id % 10 = 0, xxhash64(id), 42) as k";
    return columns;
  }

  /** Puts the key before other columns. */
  private static String[] columns(Stream<String> others) {
    return Stream.concat(Stream.of("xxhash64(id) as k"), others).toArray(String[]::new);
  }

  private long stringBytes(SparkSession session) {
    String lengths = "octet_length(name) + octet_length(city) + octet_length(hash)";
    return session
        .read()
        .parquet(folder)
        .selectExpr("sum(8 + octet_length(remark) + " + lengths + ")")
        .first()
        .getLong(0);
  }

  private Dataset<Row> tensors(SparkSession session) {
    List<Integer> files = IntStream.range(0, FILES).boxed().toList();
    long each = (count + FILES - 1) / FILES;
    long all = count;
    JavaRDD<InternalRow> rows =
        JavaSparkContext.fromSparkContext(session.sparkContext())
            .parallelize(files, FILES)
            .flatMap(
                file ->
                    LongStream.range(file * each, Math.min(all, (file + 1) * each))
                        .mapToObj(WriteInput::tensor)
                        .iterator());
    StructType schema =
        new StructType()
            .add("k", DataTypes.LongType, false)
            .add("tensor", DataTypes.createArrayType(DataTypes.FloatType, false), false);
    return ((org.apache.spark.sql.classic.SparkSession) session)
        .internalCreateDataFrame(rows.rdd(), schema, false);
  }

  private static InternalRow tensor(long id) {
    SplittableRandom random = new SplittableRandom(id);
    float[] floats = new float[TENSOR_FLOATS];
    for (int i = 0; i < floats.length; i++) {
      floats[i] = random.nextInt() * 0x1p-31f;
    }
    return new GenericInternalRow(
        new Object[] {random.nextLong(), UnsafeArrayData.fromPrimitiveArray(floats)});
  }
}
