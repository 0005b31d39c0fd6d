package io.weft.spark.config;

import io.weft.spark.GeneratedPages;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class ConfigurationPageTest {
  @Test
  void theCommittedPageIsTheGeneratedOne() throws IOException {
    GeneratedPages.assertCommitted("configuration.md", ConfigurationPage.markdown());
  }
}
