package io.weft.spark.driver;

import static io.weft.spark.config.MemorySettings.SEGMENT_SIZE;
import static io.weft.spark.config.MemorySettings.SIZE;
import static io.weft.spark.config.WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT;
import static io.weft.spark.config.WeftSettings.FETCH_REQUEST_SIZE;
import static io.weft.spark.config.WeftSettings.NCCL_ALLOW_UNENCRYPTED;

import io.weft.spark.compat.StatusLock;
import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.config.ContainerMemory;
import io.weft.spark.config.PathSettings;
import io.weft.spark.config.SpillMemory;
import io.weft.spark.config.SurviveSettings;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;

/** Warnings about combinations of settings. */
public final class SettingsWarnings {
  private SettingsWarnings() {}

  /** Returns one warning for each combination that is set. */
  public static List<String> on(SparkConf conf) {
    List<String> remarks = new ArrayList<>();
    onWeft(conf, remarks);
    onEncryption(conf, remarks);
    onSpark(conf, remarks);
    return remarks;
  }

  private static void onWeft(SparkConf conf, List<String> remarks) {
    long memory = SIZE.get(conf);
    if (memory > 0 && memory < SEGMENT_SIZE.get(conf)) {
      remarks.add("%s is below %s: segments are made that small".formatted(SIZE, SEGMENT_SIZE));
    }
    ContainerMemory.remark(conf).ifPresent(remarks::add);
    if (FETCH_MAX_BYTES_IN_FLIGHT.get(conf) < FETCH_REQUEST_SIZE.get(conf)) {
      remarks.add(
          "%s is below %s: requests are made that small"
              .formatted(FETCH_MAX_BYTES_IN_FLIGHT, FETCH_REQUEST_SIZE));
    }
  }

  private static void onEncryption(SparkConf conf, List<String> remarks) {
    SpillMemory.remark(conf).ifPresent(remarks::add);
    if (NCCL_ALLOW_UNENCRYPTED.get(conf) && PathSettings.isNetworkEncrypted(conf)) {
      remarks.add(
          "%s: Spark encrypts its network, but what NCCL sends between hosts is not encrypted"
              .formatted(NCCL_ALLOW_UNENCRYPTED));
    }
  }

  private static void onSpark(SparkConf conf, List<String> remarks) {
    if (conf.getBoolean("spark.shuffle.service.enabled", false)) {
      remarks.add(
          "spark.shuffle.service.enabled: the external shuffle service does not serve Weft's"
              + " blocks; the output of a removed executor is computed again");
    }
    if (AdoptionSettings.ENABLED.get(conf)) {
      StatusLock.objection()
          .ifPresent(
              reason ->
                  remarks.add(
                      AdoptionSettings.ENABLED.key() + ": no map outputs are adopted: " + reason));
    }
    if (conf.getBoolean("spark.shuffle.push.enabled", false)) {
      remarks.add("spark.shuffle.push.enabled: shuffles that Weft carries are not pushed");
    }
    if (conf.contains(SurviveSettings.SPARKS_PATH) && !SurviveSettings.isOn(conf)) {
      remarks.add(
          "%s: Weft's blocks move from a decommissioned executor to other executors only, not to that storage, unless %s is true"
              .formatted(SurviveSettings.SPARKS_PATH, SurviveSettings.ENABLED));
    }
    if (SurviveSettings.isAskedFor(conf)) {
      SurviveSettings.objection(conf)
          .or(StatusLock::objection)
          .ifPresent(reason -> remarks.add("Map outputs are not copied: " + reason));
    }
  }
}
