package io.weft.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Compares a page of the documentation with the generated one, or writes it. */
public final class GeneratedPages {
  private GeneratedPages() {}

  /**
   * Fails unless the committed page is the generated one; with -Dweft.writeDocs=true, writes it.
   */
  public static void assertCommitted(String page, String generated) throws IOException {
    Path file = Path.of(System.getProperty("weft.rootFolder"), "docs", page);
    if (Boolean.getBoolean("weft.writeDocs")) {
      Files.writeString(file, generated);
    }
    assertThat(file)
        .as("docs/%s is generated: run this test with -Dweft.writeDocs=true and commit it", page)
        .content()
        .isEqualTo(generated);
  }
}
