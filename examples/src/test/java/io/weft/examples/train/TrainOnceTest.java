package io.weft.examples.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.weft.examples.jobs.OpenTables;
import io.weft.examples.tpch.TpchTables;
import io.weft.spark.WeftPlugin;
import java.io.IOException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the whole example, from tables of TPC-H to a tested model, with a simple model. */
class TrainOnceTest {
  private static final int EPOCHS = 2;
  private static final int BATCH_ROWS = 64;
  private static final List<String> TABLES = List.of("orders", "lineitem", "part");

  @TempDir static Path folder;

  private static SparkSession session;
  private static ClassLoader before;

  /** A model without hidden layers. */
  public static final class LinearModels implements ModelProvider {
    private static final long serialVersionUID = 1L;

    @Override
    public String name() {
      return "one linear layer";
    }

    @Override
    public void prepare() {
      // Needs no preparation.
    }

    @Override
    public TrainingModel open(ModelShape shape, long seed) {
      return new LinearModel(shape, seed);
    }
  }

  /** Provides the service in this test only; other tests need a class path without it. */
  private static final class WithModel extends ClassLoader {
    WithModel(ClassLoader parent) {
      super(parent);
    }

    @Override
    public Enumeration<URL> getResources(String name) throws IOException {
      if (!name.equals("META-INF/services/" + ModelProvider.class.getName())) {
        return super.getResources(name);
      }
      Path service = Files.writeString(folder.resolve("service"), LinearModels.class.getName());
      return Collections.enumeration(List.of(service.toUri().toURL()));
    }
  }

  @BeforeAll
  static void start() throws Exception {
    before = Thread.currentThread().getContextClassLoader();
    session =
        SparkSession.builder()
            .master("local[2]")
            .appName("weft-train-test")
            .config("spark.plugins", WeftPlugin.class.getName())
            .config("spark.driver.host", "localhost")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.sql.warehouse.dir", folder.resolve("warehouse").toString())
            .getOrCreate();
    for (String table : TABLES) {
      long rows = TpchTables.ALL.write(table, 0.004, folder.resolve(table).toString()).run(session);
      assertThat(rows).isPositive();
    }
    assertThat(new OpenTables(folder.toString(), TABLES).run(session)).isEqualTo(3);
    Thread.currentThread().setContextClassLoader(new WithModel(before));
  }

  @AfterAll
  static void stop() {
    Thread.currentThread().setContextClassLoader(before);
    session.stop();
  }

  /** Bounds are quantiles, so no class is rare. No order is in both sets. */
  @Test
  void featuresAreTensorsAndClassesHaveEqualSizes() {
    Dataset<Row> train = PriceClasses.of(session, false);
    Dataset<Row> test = PriceClasses.of(session, true);
    long rows = train.count();
    assertThat(test.count()).isBetween(rows / 12, rows / 6);
    assertThat(rows + test.count()).isEqualTo(session.table("orders").count());
    List<Row> classes = train.groupBy(PriceClasses.LABEL).count().collectAsList();
    assertThat(classes).hasSize(PriceClasses.CLASSES);
    Set<Integer> labels = new HashSet<>();
    for (Row each : classes) {
      labels.add(each.getInt(0));
      assertThat(each.getLong(1)).isCloseTo(rows / PriceClasses.CLASSES, within(rows / 40));
    }
    assertThat(labels).containsExactlyInAnyOrder(0, 1, 2, 3, 4, 5, 6, 7);
    assertThat(train.filter("size(features) <> " + PriceClasses.FEATURE_COUNT).count()).isZero();
    assertThat(train.filter("exists(features, x -> isnan(x) OR x IS NULL)").count()).isZero();
  }

  private TrainOnce.Outcome train(TrainOnce.HandOff handOff) throws Exception {
    String work = Files.createTempDirectory(folder, "run-").toString();
    TrainingPlan plan =
        new TrainingPlan(
            new ModelShape(PriceClasses.FEATURE_COUNT, List.of(), PriceClasses.CLASSES),
            EPOCHS,
            17,
            0.02,
            1 << 10,
            work,
            1000);
    return new TrainOnce(handOff, plan, 2, BATCH_ROWS, 0).run(session);
  }

  /** The batches differ, but rows, model and optimiser are the same. */
  @Test
  void bothHandOffsTrainTheSameModelAndOnlyParquetCopies() throws Exception {
    TrainOnce.Outcome feed = train(TrainOnce.HandOff.FEED);
    TrainOnce.Outcome parquet = train(TrainOnce.HandOff.PARQUET);
    for (TrainOnce.Outcome outcome : List.of(feed, parquet)) {
      assertThat(outcome.ranks()).hasSize(2);
      assertThat(outcome.ranks().get(0).parametersCrc())
          .isEqualTo(outcome.ranks().get(1).parametersCrc());
      assertThat(outcome.accuracy()).as("of %s", outcome.handOff()).isBetween(0.2, 1.0);
      assertThat(outcome.seconds()).isGreaterThan(outcome.stepSeconds());
    }
    long steps = PriceClasses.of(session, false).count() / BATCH_ROWS / 2 * EPOCHS;
    assertThat(feed.trainedSteps()).isEqualTo(steps);
    assertThat(parquet.trainedSteps()).isBetween(steps - 2 * EPOCHS, steps);
    assertThat(feed.accuracy()).isCloseTo(parquet.accuracy(), within(0.1));
    assertThat(feed.fileBytes()).isZero();
    assertThat(parquet.fileBytes()).isPositive();
    long fed = feed.trainedSteps() * 2 * BATCH_ROWS * 4 * (PriceClasses.FEATURE_COUNT + 1);
    assertThat(feed.copiedBytes()).as("of remainders").isLessThan(fed / EPOCHS / 10);
    assertThat(parquet.copiedBytes()).isGreaterThan(fed);
    assertThat(session.conf().get("spark.weft.enabled")).isEqualTo("true");
  }
}
