package io.weft.spark.config;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class SurviveSettingsTest {
  private final SparkConf conf = new SparkConf(false).set("spark.master", "local-cluster[1,1,1]");

  @Test
  void copiesAreOffByDefaultAlsoWithSparksOwnPath() {
    assertThat(SurviveSettings.isOn(conf)).isFalse();
    conf.set(SurviveSettings.SPARKS_PATH, "/spark");
    assertThat(SurviveSettings.isOn(conf)).isFalse();
    assertThat(SurviveSettings.isAskedFor(conf)).isFalse();
  }

  @Test
  void thePathOrTheSwitchTurnsThemOn() {
    conf.set("spark.weft.survive.enabled", "true");
    assertThat(SurviveSettings.isOn(conf)).isFalse();
    assertThat(SurviveSettings.objection(conf)).get().asString().contains("is set");
    conf.set(SurviveSettings.SPARKS_PATH, "/spark");
    assertThat(SurviveSettings.isOn(conf)).isTrue();
    assertThat(SurviveSettings.path(conf)).contains("/spark");
    conf.remove("spark.weft.survive.enabled").set("spark.weft.survive.path", "hdfs://n/own");
    assertThat(SurviveSettings.isOn(conf)).isTrue();
    assertThat(SurviveSettings.path(conf)).contains("hdfs://n/own");
  }

  @Test
  void inLocalModeThereIsNoExecutorToLose() {
    conf.set("spark.weft.survive.path", "/own").set("spark.master", "local[2]");
    assertThat(SurviveSettings.isOn(conf)).isFalse();
    assertThat(SurviveSettings.objection(conf)).get().asString().contains("local mode");
  }
}
