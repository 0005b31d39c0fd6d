package io.weft.spark.config;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;

/** The version of Weft in this JVM. */
public final class WeftVersion {
  private static final String CURRENT = read();

  private WeftVersion() {}

  /** Returns the version that the build wrote. */
  public static String current() {
    return CURRENT;
  }

  private static String read() {
    Properties properties = new Properties();
    try (InputStream in = WeftVersion.class.getResourceAsStream("weft.properties")) {
      properties.load(in);
    } catch (IOException e) {
      throw new UncheckedIOException("weft.properties, a part of Weft's jar, cannot be read", e);
    }
    return properties.getProperty("version");
  }
}
