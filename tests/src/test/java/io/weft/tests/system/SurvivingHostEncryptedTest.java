package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.MapOutputs;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** With encrypted disks, all copies are encrypted, also of blocks that are in memory. */
@Tag("slow")
class SurvivingHostEncryptedTest extends SurvivingHostContract {
  SurvivingHostEncryptedTest() {
    cluster.set("spark.io.encryption.enabled", "true").set("spark.weft.transport", "tcp");
  }

  @Test
  void noCopyHasPlainText() throws IOException {
    JavaRDD<String> rows = shuffled("rows");
    assertThat(sorted(rows)).isNotEmpty();
    int shuffle = MapOutputs.lastShuffle();
    Awaitility.await().atMost(Duration.ofMinutes(1)).until(() -> copiesOf(shuffle).size() >= 6);
    List<Path> copies = copiesOf(shuffle);
    for (Path copy : copies) {
      assertThat(new String(Files.readAllBytes(copy), StandardCharsets.ISO_8859_1))
          .as(copy.toString())
          .doesNotContain(MARKER);
    }
    assertThat(sorted(rows)).isNotEmpty();
  }
}
