package io.weft.spark.feed.source;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.feed.ShardedExport;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.errors.QueryCompilationErrors;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The data source {@code weft}. Saving a data frame makes a feed, exports it as Arrow files in
 * shared memory or into memory of GPUs, and writes a manifest into the folder of the given path.
 * Loading that path gives one row per shard: see {@link ShardList}.
 *
 * <p>The export is freed when its folder or manifest is deleted or replaced, when its lease ends,
 * and when the application ends. Shards that another process has locked stay until their unlock, or
 * until their executor ends in order. Spark creates one for each use. Stateless.
 */
public final class WeftSource
    implements DataSourceRegister, CreatableRelationProvider, RelationProvider {
  private static final Logger LOG = LoggerFactory.getLogger(WeftSource.class);

  /** Spark creates it by reflection. */
  public WeftSource() {}

  @Override
  public String shortName() {
    return "weft";
  }

  /** Accepts every type, because a feed itself names the columns that it cannot carry. */
  @Override
  public boolean supportsDataType(DataType type) {
    return true;
  }

  /**
   * Exports a data frame.
   *
   * <p>If the path exists and the mode does not replace it, throws Spark's {@code
   * AnalysisException} for that.
   *
   * @return the list of the shards
   * @throws IllegalArgumentException if an option is wrong, or the data cannot be fed
   * @throws IllegalStateException if the application cannot run feeds, or files are in the way
   */
  @Override
  public BaseRelation createRelation(
      SQLContext context,
      SaveMode mode,
      scala.collection.immutable.Map<String, String> parameters,
      Dataset<Row> data) {
    FeedOptions options = FeedOptions.of(CollectionConverters.asJava(parameters));
    SparkSession session = context.sparkSession();
    ExportFolder folder = folder(session, options);
    try {
      if (isToBeWritten(folder, mode)) {
        write(session, data, options, folder, mode);
      }
    } catch (IOException e) {
      throw folder.unusable(e);
    }
    // Not read yet: the lease may already be over.
    return new ShardList(context, folder);
  }

  /** Lists the shards of an export. */
  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters) {
    // A table's options are those that it was created with.
    Map<String, String> options = CollectionConverters.asJava(parameters);
    ExportFolder folder = folder(context.sparkSession(), FeedOptions.withDefaultRanks(options));
    ShardList list = new ShardList(context, folder);
    // A wrong path is an error of the load, not only of a later action.
    List<Row> unused = list.shards();
    return list;
  }

  private static ExportFolder folder(SparkSession session, FeedOptions options) {
    return ExportFolder.of(new Path(options.path()), hadoop(session));
  }

  private static org.apache.hadoop.conf.Configuration hadoop(SparkSession session) {
    return ((org.apache.spark.sql.classic.SparkSession) session).sessionState().newHadoopConf();
  }

  /** Decides by the mode, before any row moves. */
  private static boolean isToBeWritten(ExportFolder folder, SaveMode mode) throws IOException {
    switch (mode) {
      case Append ->
          throw new IllegalArgumentException(
              "an export cannot be appended to, because all rows are dealt at once: save %s with mode"
                      .formatted(folder)
                  + " overwrite, or to another path");
      case Overwrite -> {
        folder.requireOnlyExport();
        return true;
      }
      case ErrorIfExists -> {
        if (folder.exists()) {
          throw WeftSource.<RuntimeException>exists(folder);
        }
        return true;
      }
      default -> {
        return !folder.exists();
      }
    }
  }

  /**
   * Throws Spark's own error, which programs know from other formats. It is a checked exception.
   */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException exists(ExportFolder folder)
      throws E, IOException {
    throw (E) QueryCompilationErrors.outputPathAlreadyExistsError(folder.qualified());
  }

  private static void write(
      SparkSession session,
      Dataset<Row> data,
      FeedOptions options,
      ExportFolder folder,
      SaveMode mode)
      throws IOException {
    ShardedExport<?> export = options.export(data);
    boolean kept = false;
    try {
      LeasedExport leased =
          LeasedExport.of(session.sparkContext(), export, folder, options.lease());
      LiveExports.publish(leased, mode == SaveMode.Overwrite);
      kept = true;
      LOG.info(
          "Exported {} rows for {} ranks to {}; lease: {}",
          leased.rows(),
          export.shards().size(),
          folder,
          options.lease().map(Duration::toString).orElse("until the application ends"));
    } catch (FileAlreadyExistsException e) {
      // Another save has ended since the mode was checked.
      if (mode != SaveMode.Ignore) {
        throw WeftSource.<RuntimeException>exists(folder);
      }
    } finally {
      if (!kept) {
        export.close();
      }
    }
  }

  /**
   * The shards of an export as rows, in the order of the ranks: rank, host, path of its file (on a
   * GPU: of the lease, which exists as long as the memory), rows, batches, bytes, and the end of
   * the export's lease (null without one). Thread-safe.
   */
  static final class ShardList extends BaseRelation implements TableScan {
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
                shard.required(shard.has("file") ? "file" : "lease").asText(),
                shard.required("rows").asLong(),
                shard.required("batches").asInt(),
                shard.required("bytes").asLong(),
                leaseEnd));
      }
      return shards;
    }
  }
}
