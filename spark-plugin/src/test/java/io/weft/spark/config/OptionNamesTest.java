package io.weft.spark.config;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.TransportMode;
import io.weft.spark.config.PathSettings.OptionNames;
import java.util.List;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** Messages of the lower modules name the settings of the user. */
class OptionNamesTest {
  @Test
  void everyNameIsAKeyOfASetting() {
    List<String> keys = WeftSettings.all().stream().map(Setting::key).toList();
    assertThat(OptionNames.settings().byOption()).hasSize(14).doesNotContainKey("unknown");
    assertThat(OptionNames.settings().byOption().values())
        .allMatch(
            name ->
                keys.contains(name)
                    || List.of("spark.local.dir", "spark.executor.memoryOverhead").contains(name));
    assertThat(OptionNames.settings().of("unknown")).isEqualTo("unknown");
  }

  @Test
  void pathsNameTheSettings() {
    PathRules rules = PathSettings.rules(new SparkConf(false).set("spark.weft.transport", "tcp"));
    assertThat(rules.mode()).isEqualTo(TransportMode.TCP);
    assertThat(rules.names().of("mode")).isEqualTo("spark.weft.transport");
    assertThat(rules.names().of("unencryptedNccl")).isEqualTo("spark.weft.nccl.allowUnencrypted");
  }
}
