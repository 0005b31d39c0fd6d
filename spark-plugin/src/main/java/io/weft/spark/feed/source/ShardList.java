package io.weft.spark.feed.source;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.weft.spark.compat.ScalaInterop;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The shards of an export as rows, in the order of the ranks: rank, host, path, rows, batches,
 * bytes, and the end of the lease (null without one). Immutable.
 */
final class ShardList extends BaseRelation implements TableScan {
  private static final StructType SCHEMA =
      new StructType()
          .add("rank", DataTypes.IntegerType)
          .add("host", DataTypes.StringType)
          .add("path", DataTypes.StringType)
          .add("rows", DataTypes.LongType)
          .add("batches", DataTypes.IntegerType)
          .add("bytes", DataTypes.LongType)
          .add("leaseEnd", DataTypes.TimestampType);

  private final SQLContext context;
  private final List<Row> shards = new ArrayList<>();

  /**
   * Lists what a manifest names.
   *
   * @throws IllegalArgumentException if the manifest lacks a field
   */
  ShardList(SQLContext context, ObjectNode manifest) {
    this.context = context;
    JsonNode end = manifest.get(LeasedExport.LEASE_END);
    // With both of its date APIs, Spark accepts an Instant.
    Instant leaseEnd = end == null ? null : Instant.ofEpochMilli(end.asLong());
    for (JsonNode shard : manifest.required("shards")) {
      shards.add(
          RowFactory.create(
              shard.required("rank").asInt(),
              shard.required("host").asText(),
              shard.required("file").asText(),
              shard.required("rows").asLong(),
              shard.required("batches").asInt(),
              shard.required("bytes").asLong(),
              leaseEnd));
    }
  }

  @Override
  public SQLContext sqlContext() {
    return context;
  }

  @Override
  public StructType schema() {
    return SCHEMA;
  }

  @Override
  public RDD<Row> buildScan() {
    List<Row> rows = List.copyOf(shards);
    return context
        .sparkSession()
        .sparkContext()
        .parallelize(ScalaInterop.seq(rows), 1, ScalaInterop.tag(Row.class));
  }
}
