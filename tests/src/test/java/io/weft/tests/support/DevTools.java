package io.weft.tests.support;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * A connection to a browser by the Chrome DevTools Protocol: commands with answers, and events, as
 * JSON over a web socket. A wait ends after 60 seconds with an error. For one thread of a test.
 */
final class DevTools implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final WebSocket socket;
  private final Map<Integer, CompletableFuture<JsonNode>> pending = new HashMap<>();
  private final List<JsonNode> events = new ArrayList<>();
  private int commands;

  /** Why the connection was lost; null while there is one. */
  private Throwable lost;

  DevTools(String url) {
    socket =
        join(
            HttpClient.newHttpClient().newWebSocketBuilder().buildAsync(URI.create(url), reader()));
  }

  private WebSocket.Listener reader() {
    StringBuilder message = new StringBuilder();
    return new WebSocket.Listener() {
      @Override
      public CompletionStage<?> onText(WebSocket from, CharSequence part, boolean last) {
        message.append(part);
        if (last) {
          received(message.toString());
          message.setLength(0);
        }
        from.request(1);
        return null;
      }

      @Override
      public void onError(WebSocket from, Throwable error) {
        lost(error);
      }

      @Override
      public CompletionStage<?> onClose(WebSocket from, int status, String reason) {
        lost(new IllegalStateException("the browser has closed the connection: " + reason));
        return null;
      }
    };
  }

  private synchronized void received(String text) {
    try {
      JsonNode message = MAPPER.readTree(text);
      CompletableFuture<JsonNode> answered = pending.remove(message.path("id").asInt());
      if (answered == null) {
        events.add(message);
        notifyAll();
      } else if (message.has("error")) {
        answered.completeExceptionally(new AssertionError(message.get("error").toString()));
      } else {
        answered.complete(message.get("result"));
      }
    } catch (JsonProcessingException e) {
      lost(e);
    }
  }

  private synchronized void lost(Throwable why) {
    lost = lost == null ? why : lost;
    notifyAll();
    pending.values().forEach(answer -> answer.completeExceptionally(why));
    pending.clear();
  }

  /**
   * Sends a command and returns its result.
   *
   * @param session the tab's session; empty for the browser itself
   */
  JsonNode send(String session, String method, Map<String, ?> parameters) {
    CompletableFuture<JsonNode> answer = new CompletableFuture<>();
    ObjectNode message = MAPPER.createObjectNode();
    synchronized (this) {
      checkConnection();
      message.put("id", ++commands);
      pending.put(commands, answer);
    }
    message.put("method", method).set("params", MAPPER.valueToTree(parameters));
    if (!session.isEmpty()) {
      message.put("sessionId", session);
    }
    join(socket.sendText(message.toString(), true));
    try {
      return join(answer);
    } catch (CompletionException e) {
      throw new AssertionError(method + " " + parameters + " failed", e.getCause());
    }
  }

  private void checkConnection() {
    if (lost != null) {
      throw new AssertionError("the connection to the browser was lost", lost);
    }
  }

  private static <T> T join(CompletableFuture<T> future) {
    return future.orTimeout(LIMIT.toMillis(), TimeUnit.MILLISECONDS).join();
  }

  /** The parameters of a session's events of one kind so far, in order. */
  synchronized List<JsonNode> events(String session, String method) {
    return events.stream()
        .filter(event -> event.path("sessionId").asText().equals(session))
        .filter(event -> event.path("method").asText().equals(method))
        .map(event -> event.get("params"))
        .toList();
  }

  /** Waits until a session has had an event of one kind whose parameters match. */
  synchronized void awaitEvent(String session, String method, Predicate<JsonNode> matching) {
    long deadline = System.nanoTime() + LIMIT.toNanos();
    try {
      while (events(session, method).stream().noneMatch(matching)) {
        checkConnection();
        long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        if (left <= 0) {
          throw new AssertionError("timed out without an expected " + method);
        }
        wait(left);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted before an expected " + method, e);
    }
  }

  @Override
  public void close() {
    socket.abort();
  }
}
