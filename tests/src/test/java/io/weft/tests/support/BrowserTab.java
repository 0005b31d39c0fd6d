package io.weft.tests.support;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * A tab of a {@link Browser}, with a window of its own size. It is used as a person does, by mouse
 * and by what is on the page, and records errors and requests. For one thread of a test.
 */
public final class BrowserTab implements AutoCloseable {
  private static final String STEP = "Page.lifecycleEvent";
  private static final int WIDTH = 1280;
  private static final int HEIGHT = 900;

  private final DevTools tools;
  private final String target;
  private final String session;
  private int windowWidth;

  BrowserTab(DevTools tools) {
    this.tools = tools;
    target =
        tools
            .send("", "Target.createTarget", Map.of("url", "about:blank"))
            .get("targetId")
            .asText();
    session =
        tools
            .send("", "Target.attachToTarget", Map.of("targetId", target, "flatten", true))
            .get("sessionId")
            .asText();
    for (String domain : List.of("Page", "Runtime", "Log", "Network")) {
      send(domain + ".enable", Map.of());
    }
    send("Page.setLifecycleEventsEnabled", Map.of("enabled", true));
    resize(WIDTH, HEIGHT);
    prefer("light");
  }

  private JsonNode send(String method, Map<String, ?> parameters) {
    return tools.send(session, method, parameters);
  }

  private List<JsonNode> events(String method) {
    return tools.events(session, method);
  }

  /** Sets the size of the window, in pixels. */
  public void resize(int width, int height) {
    windowWidth = width;
    send(
        "Emulation.setDeviceMetricsOverride",
        Map.of("width", width, "height", height, "deviceScaleFactor", 1, "mobile", false));
  }

  /**
   * Sets the colour scheme that the person prefers: light or dark. Pages do not scroll smoothly to
   * an anchor, as those of Spark 4.2 do, because a click would miss what moves.
   */
  public void prefer(String scheme) {
    send(
        "Emulation.setEmulatedMedia",
        Map.of(
            "features",
            List.of(
                Map.of("name", "prefers-color-scheme", "value", scheme),
                Map.of("name", "prefers-reduced-motion", "value", "reduce"))));
  }

  /** Loads a page; waits for the end of this load, not of an earlier one. */
  public void load(String url) {
    JsonNode answer = send("Page.navigate", Map.of("url", url));
    if (answer.has("errorText")) {
      throw new AssertionError(url + ": " + answer.get("errorText").asText());
    }
    String loader = answer.get("loaderId").asText();
    tools.awaitEvent(session, STEP, step -> isLoaded(step) && loader(step).equals(loader));
  }

  private static boolean isLoaded(JsonNode step) {
    return step.get("name").asText().equals("load");
  }

  /** The browser's name of one navigation. */
  private static String loader(JsonNode step) {
    return step.get("loaderId").asText();
  }

  /** The address of the page. */
  public URI address() {
    return URI.create(evaluate("location.href").asText());
  }

  /** Clicks on the first element with exactly this text; waits until another page has loaded. */
  public void follow(String selector, String text) {
    Set<String> before = events(STEP).stream().map(BrowserTab::loader).collect(Collectors.toSet());
    click(selector, text);
    tools.awaitEvent(session, STEP, step -> isLoaded(step) && !before.contains(loader(step)));
  }

  /** Clicks on the first element with exactly this text. */
  public void click(String selector, String text) {
    JsonNode middle = find("weft.middle(weft.withText(%s, %s))", selector, text);
    mouse("mouseMoved", middle, "none");
    mouse("mousePressed", middle, "left");
    mouse("mouseReleased", middle, "left");
  }

  /**
   * Moves the mouse over the nth element; returns its tooltip as the browser finds it there, or an
   * empty text.
   */
  public String hover(String selector, int index) {
    mouse(
        "mouseMoved",
        find("weft.middle(document.querySelectorAll(%s)[%s])", selector, index),
        "none");
    return evaluate("weft.tooltip()").asText();
  }

  private JsonNode find(String script, Object... values) {
    Object[] quoted = Stream.of(values).map(BrowserTab::quote).toArray();
    return evaluate(String.format(script, quoted));
  }

  private static Object quote(Object value) {
    return value instanceof Number ? value : "'" + value.toString().replace("'", "\\'") + "'";
  }

  private void mouse(String type, JsonNode at, String button) {
    send(
        "Input.dispatchMouseEvent",
        Map.of(
            "type",
            type,
            "x",
            at.get("x").asDouble(),
            "y",
            at.get("y").asDouble(),
            "button",
            button,
            "clickCount",
            button.equals("none") ? 0 : 1));
  }

  /** The value of an expression in the page, where {@code weft} is the script page-checks.js. */
  public JsonNode evaluate(String expression) {
    JsonNode answer =
        send(
            "Runtime.evaluate", Map.of("expression", checks() + expression, "returnByValue", true));
    if (answer.has("exceptionDetails")) {
      throw new AssertionError(expression + ": " + answer.get("exceptionDetails"));
    }
    return answer.at("/result/value");
  }

  /** The texts in the array that an expression gives. */
  public List<String> texts(String expression) {
    return StreamSupport.stream(evaluate(expression).spliterator(), false)
        .map(JsonNode::asText)
        .toList();
  }

  private static String checks() {
    try (InputStream in = BrowserTab.class.getResourceAsStream("page-checks.js")) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Errors of scripts and of loading so far. */
  public List<String> errors() {
    List<String> errors = new ArrayList<>();
    events("Runtime.exceptionThrown").forEach(event -> errors.add(event.toString()));
    Stream.of("Runtime.consoleAPICalled", "Log.entryAdded")
        .flatMap(kind -> events(kind).stream())
        .map(event -> event.has("entry") ? event.get("entry") : event)
        .filter(entry -> entry.path("type").asText(entry.path("level").asText()).equals("error"))
        .forEach(entry -> errors.add(entry.toString()));
    return errors;
  }

  /** The addresses requested so far, without data in addresses. */
  public List<URI> requests() {
    return events("Network.requestWillBeSent").stream()
        .map(event -> event.at("/request/url").asText())
        .filter(url -> !url.startsWith("data:"))
        .map(URI::create)
        .toList();
  }

  /** Writes a PNG picture of the page's full width, from one element to the top of another. */
  public void picture(Path file, String from, String to) {
    double top = find("weft.top(%s)", from).asDouble();
    double bottom = find("weft.top(%s)", to).asDouble();
    Map<String, Double> clip =
        Map.of(
            "x", 0.0, "y", top, "width", windowWidth + 0.0, "height", bottom - top, "scale", 1.0);
    JsonNode shot =
        send(
            "Page.captureScreenshot",
            Map.of("format", "png", "clip", clip, "captureBeyondViewport", true));
    try {
      Files.createDirectories(file.getParent());
      Files.write(file, Base64.getDecoder().decode(shot.get("data").asText()));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    tools.send("", "Target.closeTarget", Map.of("targetId", target));
  }
}
