package io.weft.spark.runtime;

import com.codahale.metrics.MetricRegistry;
import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.resource.ResourceInformation;

/**
 * The plugin context of executor 3. Its driver answers as the test configures and records messages.
 */
record FakeContext(Answers answers, List<Object> sent) implements PluginContext {
  FakeContext(Callable<Object> answer) {
    this(request -> answer.call(), new CopyOnWriteArrayList<>());
  }

  /** What the driver answers. */
  interface Answers {
    /** Returns the answer to a decoded message. */
    Object to(Object request) throws Exception;
  }

  @Override
  public Object ask(Object message) throws Exception {
    return MessageCodec.encode((Serializable) answers.to(MessageCodec.decode(message)));
  }

  @Override
  public void send(Object message) {
    sent.add(message);
  }

  @Override
  public MetricRegistry metricRegistry() {
    throw new UnsupportedOperationException();
  }

  @Override
  public SparkConf conf() {
    throw new UnsupportedOperationException();
  }

  @Override
  public String executorID() {
    return "3";
  }

  @Override
  public String hostname() {
    return "here";
  }

  @Override
  public Map<String, ResourceInformation> resources() {
    return Map.of();
  }
}
