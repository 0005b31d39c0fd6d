package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
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
 * Writes the input of a workload as Parquet and returns the bytes of its data: 8 for a number, 4
 * for a float of a tensor, the length of a string in bytes. The same count gives the same rows.
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
    TENSORS
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

  @Override
  public Long run(SparkSession session) {
    rows(session).write().parquet(folder);
    return switch (kind) {
      case NUMERIC -> count * NUMBERS.length * Long.BYTES;
      case STRINGS -> stringBytes(session);
      case TENSORS -> count * (Long.BYTES + TENSOR_FLOATS * Float.BYTES);
    };
  }

  private Dataset<Row> rows(SparkSession session) {
    return switch (kind) {
      case NUMERIC -> session.range(0, count, 1, FILES).selectExpr(NUMBERS);
      case STRINGS -> session.range(0, count, 1, FILES).selectExpr(STRINGS);
      case TENSORS -> tensors(session);
    };
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
