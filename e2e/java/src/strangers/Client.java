package strangers;

import static io.modelcontextprotocol.spec.McpSchema.*;

import io.modelcontextprotocol.client.McpAsyncClient;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpError;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * A client with the official Java SDK. It does what it reads, as the head of clients/stranger.mjs says.
 *
 * <pre>java strangers.Client http|stdio REVISION TARGET…</pre>
 */
final class Client {
	private static final McpJsonMapper JSON = McpJsonDefaults.getMapper();
	private static final AtomicInteger asked = new AtomicInteger();
	private static final Map<Integer, Sinks.One<Object>> questions = new ConcurrentHashMap<>();

	/** Tells the driver something, which may lack what is null. */
	private static void say(Object... pairs) {
		Map<String, Object> message = new HashMap<>();
		for (int i = 0; i < pairs.length; i += 2) {
			if (pairs[i + 1] != null) message.put((String) pairs[i], pairs[i + 1]);
		}
		try {
			String line = JSON.writeValueAsString(message);
			synchronized (System.out) {
				System.out.println(line);
				System.out.flush();
			}
		} catch (Exception e) {
			throw new IllegalStateException(e);
		}
	}

	private static Mono<Void> tell(String kind, Object what) {
		say("tell", kind, "what", what);
		return Mono.empty();
	}

	/** Lets the driver answer what the server asks. */
	private static <T> Mono<T> ask(String kind, Object params, Class<T> type) {
		int id = asked.incrementAndGet();
		Sinks.One<Object> answer = Sinks.one();
		questions.put(id, answer);
		say("ask", id, "kind", kind, "params", params);
		return answer.asMono().map(result -> JSON.convertValue(result, type));
	}

	private static McpClientTransport transport(String kind, String revision, List<String> target) {
		// Of themselves they offer their latest, but they speak the others too.
		if (kind.equals("http")) {
			URI uri = URI.create(target.get(0));
			return HttpClientStreamableHttpTransport.builder(uri.resolve("/").toString()).endpoint(uri.getPath())
				.supportedProtocolVersions(List.of(revision)).build();
		}
		ServerParameters command = ServerParameters.builder(target.get(0)).args(target.subList(1, target.size())).build();
		return new StdioClientTransport(command, JSON) {
			@Override
			public List<String> protocolVersions() {
				return List.of(revision);
			}
		};
	}

	public static void main(String[] args) throws Exception {
		McpAsyncClient client = McpClient.async(transport(args[0], args[1], Arrays.asList(args).subList(2, args.length)))
			.clientInfo(new Implementation("java", "1.0.0"))
			.requestTimeout(Duration.ofSeconds(60)).initializationTimeout(Duration.ofSeconds(60))
			.capabilities(JSON.convertValue(Map.of("elicitation", Map.of("form", Map.of(), "url", Map.of()), "sampling", Map.of(),
				"roots", Map.of("listChanged", true)), ClientCapabilities.class))
			.roots(new Root("file:///home/ada", "home"), new Root("file:///srv", null))
			.sampling(request -> ask("sample", request, CreateMessageResult.class))
			.elicitation(request -> ask("elicit", request, ElicitResult.class))
			.urlElicitation(request -> ask("elicit", request, ElicitResult.class))
			.loggingConsumer(entry -> tell("log", entry))
			.progressConsumer(progress -> {
				say("tell", "progress", "of", progress.progressToken(), "what", progress);
				return Mono.empty();
			})
			.toolsChangeConsumer(tools -> tell("tools", null))
			.promptsChangeConsumer(prompts -> tell("prompts", null))
			.resourcesChangeConsumer(resources -> tell("resources", null))
			.resourcesUpdateConsumer(contents -> tell("updated", contents.get(0).uri()))
			.build();
		InitializeResult hello = client.initialize().block();
		say("tell", "connected", "what", Map.of("revision", hello.protocolVersion(), "server", hello.serverInfo(),
			"instructions", hello.instructions(), "capabilities", hello.capabilities(), "keeps", false));

		BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
		for (String line; (line = lines.readLine()) != null;) {
			@SuppressWarnings("unchecked")
			Map<String, Object> message = JSON.readValue(line, Map.class);
			if (message.get("answer") instanceof Integer id) {
				questions.remove(id).tryEmitValue(message.get("result"));
				continue;
			}
			Object id = message.get("id");
			if ("close".equals(message.get("op"))) {
				client.closeGracefully().block(Duration.ofSeconds(20));
				say("id", id, "result", Map.of());
				System.exit(0);
			}
			if ("cancel".equals(message.get("op"))) {
				fail(message.get("of"), new UnsupportedOperationException("the SDK has no way to cancel a request"));
				continue;
			}
			@SuppressWarnings("unchecked")
			Map<String, Object> params = (Map<String, Object>) message.get("params");
			perform(client, id, (String) message.get("op"), params).defaultIfEmpty(Map.of())
				.subscribe(result -> say("id", id, "result", result), error -> fail(id, error));
		}
	}

	private static void fail(Object id, Throwable error) {
		Map<String, Object> fault = new HashMap<>(Map.of("message", String.valueOf(error.getMessage())));
		if (error instanceof McpError e && e.getJsonRpcError() != null) {
			fault.put("code", e.getJsonRpcError().code());
			fault.put("message", e.getJsonRpcError().message());
			if (e.getJsonRpcError().data() != null) fault.put("data", e.getJsonRpcError().data());
		} else {
			error.printStackTrace();
		}
		say("id", id, "error", fault);
	}

	/** Performs one operation. */
	private static Mono<Object> perform(McpAsyncClient client, Object id, String op, Map<String, Object> p) {
		String cursor = (String) p.get("cursor");
		Mono<?> outcome = switch (op) {
			case "listTools" -> client.listTools(cursor);
			case "listResources" -> client.listResources(cursor);
			case "listResourceTemplates" -> client.listResourceTemplates(cursor);
			case "listPrompts" -> client.listPrompts(cursor);
			case "callTool" -> {
				Map<String, Object> call = new HashMap<>(p);
				if (Boolean.TRUE.equals(call.remove("progress"))) call.put("_meta", Map.of("progressToken", id));
				yield client.callTool(JSON.convertValue(call, CallToolRequest.class));
			}
			case "readResource" -> client.readResource(JSON.convertValue(Map.of("uri", p.get("uri")), ReadResourceRequest.class));
			case "getPrompt" -> client.getPrompt(JSON.convertValue(p, GetPromptRequest.class));
			case "complete" -> client.completeCompletion(JSON.convertValue(p, CompleteRequest.class));
			case "ping" -> client.ping();
			case "setLoggingLevel" -> client.setLoggingLevel(JSON.convertValue(p.get("level"), LoggingLevel.class));
			case "subscribe" -> client.subscribeResource(JSON.convertValue(p, SubscribeRequest.class));
			case "unsubscribe" -> client.unsubscribeResource(JSON.convertValue(p, UnsubscribeRequest.class));
			default -> Mono.error(new IllegalArgumentException("no such operation: " + op));
		};
		return outcome.cast(Object.class);
	}
}
