package io.weft.spark.feed.source;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.weft.spark.compat.ScalaInterop;
import java.io.IOException;
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
 * bytes, and the end of the lease (null without one). Thread-safe.
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
  private final ExportFolder folder;

  ShardList(SQLContext context, ExportFolder folder) {
    this.context = context;
    this.folder = folder;
  }

  @Override
  public SQLContext sqlContext() {
    return context;
  }

  @Override
  public StructType schema() {
    return SCHEMA;
  }

  /**
   * Lists what the manifest names now: Spark caches the relation of a table.
   *
   * @throws IllegalArgumentException if there is no manifest, or it lacks a field
   * @throws IllegalStateException if it cannot be read
   */
  @Override
  public RDD<Row> buildScan() {
    List<Row> rows = shards();
    return context
        .sparkSession()
        .sparkContext()
        .parallelize(ScalaInterop.seq(rows), 1, ScalaInterop.tag(Row.class));
  }

  /** As {@link #buildScan}. */
  List<Row> shards() {
    try {
      return shards(folder.manifest().orElseThrow(this::missing));
    } catch (IOException e) {
      throw folder.unusable(e);
    }
  }

  private IllegalArgumentException missing() {
    return new IllegalArgumentException(
        ("%s has no export: its lease or its application has ended, it was deleted, or none was"
                + " saved there")
            .formatted(folder));
  }

  private static List<Row> shards(ObjectNode manifest) {
    JsonNode end = manifest.get(LeasedExport.LEASE_END);
    // With both of its date APIs, Spark accepts an Instant.
    Instant leaseEnd = end == null ? null : Instant.ofEpochMilli(end.asLong());
    List<Row> shards = new ArrayList<>();
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
    return shards;
  }
}
