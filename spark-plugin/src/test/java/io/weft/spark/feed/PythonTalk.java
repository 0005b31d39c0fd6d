package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;

/** A process of Python that the test talks with by lines, and that it ends. */
record PythonTalk(Process process, BufferedReader out) implements AutoCloseable {
  static PythonTalk start(String script, String... arguments) throws Exception {
    Process process = PythonScript.start(script, arguments);
    return new PythonTalk(
        process,
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)));
  }

  String line() throws Exception {
    return Scripts.within(process, out::readLine);
  }

  void goOn() throws Exception {
    OutputStream in = process.getOutputStream();
    in.write('\n');
    in.flush();
  }

  JsonNode result() throws Exception {
    return new ObjectMapper().readTree(line());
  }

  void kill() throws Exception {
    process.destroyForcibly();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
  }

  @Override
  public void close() throws Exception {
    kill();
  }
}
