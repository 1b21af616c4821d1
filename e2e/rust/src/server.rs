use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::{Peer, RequestContext, SubscriptionContext},
    task_manager::{TaskExit, TaskManager, TaskOptions},
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio, streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde_json::{Value, from_value, json};
use tokio::sync::{Notify, broadcast};

const PAGE: usize = 2;
const TOOLS: [&str; 11] = ["ask", "cancelled", "count", "errand", "fail", "grow", "log", "release", "shrink", "touch", "wait"];

/// What the sessions of one server have in common.
struct Shared {
    resources: Mutex<Vec<String>>,
    grown: Mutex<BTreeSet<String>>,
    cancelled: AtomicU64,
    tasks: TaskManager,
    errands: Mutex<HashMap<String, Arc<Notify>>>, // those that wait to be released
    watchers: Mutex<Vec<(String, Peer<RoleServer>)>>,
    changes: broadcast::Sender<Change>,
    listening: Mutex<VecDeque<broadcast::Receiver<Change>>>, // of those whose filter was accepted
}

#[derive(Clone)]
enum Change {
    Lists,
    Resource(String),
}

#[derive(Clone)]
struct Server(Arc<Shared>);

fn server() -> Server {
    Server(Arc::new(Shared {
        resources: Mutex::new((1..=5).map(|n| format!("e2e://{n}")).collect()),
        grown: Default::default(),
        cancelled: Default::default(),
        tasks: Default::default(),
        errands: Default::default(),
        watchers: Default::default(),
        changes: broadcast::channel(16).0,
        listening: Default::default(),
    }))
}

fn text(words: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(words.into())])
}

/// Makes what the types of the SDK describe from JSON.
fn made<T: serde::de::DeserializeOwned>(value: Value) -> T {
    from_value(value).unwrap()
}

/// Returns a page of items and the cursor of the next.
fn page<T: Clone>(items: &[T], request: &Option<PaginatedRequestParams>) -> (Vec<T>, Option<String>) {
    let start: usize = request.as_ref().and_then(|r| r.cursor.as_ref()).map_or(0, |c| c.parse().unwrap());
    let end = items.len().min(start + PAGE);
    (items[start..end].to_vec(), (end < items.len()).then(|| end.to_string()))
}

fn modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|v| v >= ProtocolVersion::V_2026_07_28)
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl Server {
    async fn touch(&self, uri: String) -> Result<CallToolResult, ErrorData> {
        let _ = self.0.changes.send(Change::Resource(uri.clone()));
        let watchers = self.0.watchers.lock().unwrap().clone();
        for (watched, peer) in watchers {
            if watched == uri {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri.clone())).await.map_err(internal)?;
            }
        }
        Ok(text("touched"))
    }

    async fn changed(&self, context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
        let _ = self.0.changes.send(Change::Lists);
        if !modern(context) {
            context.peer.notify_tool_list_changed().await.map_err(internal)?;
            context.peer.notify_resource_list_changed().await.map_err(internal)?;
        }
        Ok(text("changed"))
    }

    async fn wait(&self, context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            let told = ProgressNotificationParam::new(token, 1.0).with_message("waiting");
            context.peer.notify_progress(told).await.map_err(internal)?;
        }
        tokio::select! {
            () = context.ct.cancelled() => {
                self.0.cancelled.fetch_add(1, Ordering::SeqCst);
                Err(internal("cancelled"))
            }
            () = tokio::time::sleep(Duration::from_secs(60)) => Ok(text("nobody cancelled this call")),
        }
    }

    /// Runs as a task: it waits to be released, or comes to another end.
    fn errand(&self, request: CallToolRequestParams) -> CallToolResponse {
        let arguments = json!(request.arguments);
        let word = |v: &Value| v.as_str().unwrap_or_default().to_string();
        let (key, end) = (word(&arguments["key"]), word(&arguments["end"]));
        let released = Arc::new(Notify::new());
        self.0.errands.lock().unwrap().insert(key.clone(), released.clone());
        let shared = self.0.clone();
        let options = TaskOptions::new().with_ttl_ms(60_000).with_poll_interval_ms(50);
        let task = self.0.tasks.spawn(options, |task| Box::pin(async move {
            match end.as_str() {
                "fail" => return Ok(CallToolResult::error(vec![ContentBlock::text("this errand fails always")])),
                "crash" => return Err(internal("this errand breaks down always").into()),
                "ask" => {
                    let question = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Your name?", "requestedSchema": {
                        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
                    }}});
                    let name = task.request_input("name", made(question)).await?;
                    return Ok(text(format!("{} {}", word(&name["action"]), word(&name["content"]["name"]))));
                }
                _ => task.set_status_message("waiting"),
            }
            tokio::select! {
                () = released.notified() => Ok(text(format!("{key} was released"))),
                () = task.cancelled() => {
                    shared.cancelled.fetch_add(1, Ordering::SeqCst);
                    Err(TaskExit::Cancelled)
                }
            }
        }));
        CreateTaskResult::new(task).into()
    }

    fn release(&self, key: &str) -> Result<CallToolResult, ErrorData> {
        let errand = self.0.errands.lock().unwrap().remove(key).ok_or_else(|| internal("there is no such errand"))?;
        errand.notify_one();
        Ok(text("released"))
    }

    async fn log(&self, context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
        for (level, words) in [(LoggingLevel::Info, "All is well"), (LoggingLevel::Error, "All is lost")] {
            let entry = LoggingMessageNotificationParam::new(level, json!(words)).with_logger("e2e");
            context.peer.notify_logging_message(entry).await.map_err(internal)?;
        }
        Ok(text("logged"))
    }

    /// Asks for a name, an answer of the model and the roots: in one round, or one after the other.
    async fn ask(&self, request: CallToolRequestParams, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let form = json!({"mode": "form", "message": "Your name?", "requestedSchema": {
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        }});
        let question = json!({"maxTokens": 9, "messages": [
            {"role": "user", "content": {"type": "text", "text": "The capital of France?"}},
        ]});
        let (name, capital, roots) = if !modern(context) {
            (
                json!(context.peer.create_elicitation(made(form)).await.map_err(internal)?),
                json!(context.peer.create_message(made(question)).await.map_err(internal)?),
                json!(context.peer.list_roots().await.map_err(internal)?),
            )
        } else if let Some(answers) = request.input_responses {
            (answers["name"].clone(), answers["capital"].clone(), answers["roots"].clone())
        } else {
            return Ok(made::<InputRequiredResult>(json!({"resultType": "input_required", "requestState": "asked", "inputRequests": {
                "name": {"method": "elicitation/create", "params": form},
                "capital": {"method": "sampling/createMessage", "params": question},
                "roots": {"method": "roots/list"},
            }})).into());
        };
        let said = if capital["content"].is_array() { &capital["content"][0] } else { &capital["content"] };
        let word = |v: &Value| v.as_str().unwrap_or_default().to_string();
        Ok(text(format!(
            "{} {} says {}, in {}",
            word(&name["action"]), word(&name["content"]["name"]), word(&said["text"]), word(&roots["roots"][0]["uri"]),
        )).into())
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let can = json!({
            "tools": {"listChanged": true}, "prompts": {}, "resources": {"listChanged": true, "subscribe": true},
            "completions": {}, "logging": {}, "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        ServerConfig::new(made(can)).with_server_info(Implementation::new("rust", "1.0.0")).with_instructions("Try everything.")
    }

    async fn list_tools(&self, request: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        let mut names: Vec<String> = TOOLS.map(String::from).to_vec();
        names.extend(self.0.grown.lock().unwrap().iter().cloned());
        let (names, next) = page(&names, &request);
        let tools: Vec<Value> = names.iter().map(|name| match name.as_str() {
            "count" => json!({"name": name, "inputSchema": named(), "outputSchema": {
                "type": "object", "properties": {"letters": {"type": "integer"}}, "required": ["letters"],
            }}),
            "grow" | "release" | "shrink" | "touch" => json!({"name": name, "inputSchema": named()}),
            _ => json!({"name": name, "inputSchema": {"type": "object"}}),
        }).collect();
        let mut result = ListToolsResult::with_all_items(made(json!(tools)));
        result.next_cursor = next;
        Ok(result)
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let name = request.arguments.as_ref().and_then(|a| a.get("name")).and_then(Value::as_str).unwrap_or_default().to_string();
        let tool = request.name.to_string();
        let result = match tool.as_str() {
            "ask" => return self.ask(request, &context).await,
            "errand" => return Ok(self.errand(request)),
            "release" => self.release(&name)?,
            "cancelled" => text(self.0.cancelled.load(Ordering::SeqCst).to_string()),
            "count" => CallToolResult::structured(json!({"letters": name.chars().count()})),
            "fail" => CallToolResult::error(vec![ContentBlock::text("this tool fails always")]),
            "grow" => {
                self.0.resources.lock().unwrap().push(format!("e2e://new/{name}"));
                self.0.grown.lock().unwrap().insert(name);
                self.changed(&context).await?
            }
            "log" => self.log(&context).await?,
            "shrink" => {
                self.0.resources.lock().unwrap().retain(|uri| *uri != format!("e2e://new/{name}"));
                self.0.grown.lock().unwrap().remove(&name);
                self.changed(&context).await?
            }
            "touch" => self.touch(name).await?,
            "wait" => self.wait(&context).await?,
            _ if self.0.grown.lock().unwrap().contains(&tool) => text("I am new"),
            _ => return Err(ErrorData::invalid_params(format!("no tool is called {tool}"), None)),
        };
        Ok(result.into())
    }

    async fn get_task(&self, request: GetTaskParams, _: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.0.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let answers = request.input_responses.into_iter().map(|(key, answer)| (key, json!(answer)));
        self.0.tasks.update_task(&request.task_id, answers)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.tasks.cancel_task(&request.task_id)
    }

    async fn list_resources(&self, request: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListResourcesResult, ErrorData> {
        let (uris, next) = page(&self.0.resources.lock().unwrap(), &request);
        let resources: Vec<Value> = uris.iter().map(|uri| json!({"uri": uri, "name": uri})).collect();
        let mut result = ListResourcesResult::with_all_items(made(json!(resources)));
        result.next_cursor = next;
        Ok(result)
    }

    async fn list_resource_templates(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(made(json!([{"uriTemplate": "e2e://words/{word}", "name": "words"}]))))
    }

    async fn read_resource(&self, request: ReadResourceRequestParams, _: RequestContext<RoleServer>) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let words = if self.0.resources.lock().unwrap().contains(&uri) {
            format!("This is {uri}")
        } else if let Some(word) = uri.strip_prefix("e2e://words/") {
            word.to_uppercase()
        } else {
            return Err(ErrorData::resource_not_found("no such resource", Some(json!({"uri": uri}))));
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(words, uri)]).into())
    }

    async fn list_prompts(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(made(json!([{"name": "letter", "arguments": [{"name": "country"}, {"name": "city"}]}]))))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "letter" {
            return Err(ErrorData::invalid_params(format!("no prompt is called {}", request.name), None));
        }
        let city = json!(request.arguments)["city"].as_str().unwrap_or_default().to_string();
        Ok(made::<GetPromptResult>(json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": format!("Write to {city}")}},
        ]})).into())
    }

    async fn complete(&self, request: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        let country = json!(request.context)["arguments"]["country"].as_str().unwrap_or_default().to_string();
        let known = if country == "France" { ["Lyon", "Paris"] } else { ["Oslo", "Rome"] };
        let values: Vec<&str> = known.into_iter().filter(|city| city.starts_with(&request.argument.value)).collect();
        Ok(made(json!({"completion": {"values": values}})))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.watchers.lock().unwrap().push((request.uri, context.peer));
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.watchers.lock().unwrap().retain(|(uri, _)| *uri != request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // The SDK acknowledges a subscription before it calls listen, which is too late to begin to hear.
        self.0.listening.lock().unwrap().push_back(self.0.changes.subscribe());
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.listening.lock().unwrap().pop_front().unwrap();
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                change = changes.recv() => change.map_err(internal)?,
            };
            let accepted = subscription.accepted();
            match change {
                Change::Lists => {
                    if accepted.tools_list_changed == Some(true) {
                        subscription.sink().notify_tool_list_changed().await.map_err(internal)?;
                    }
                    if accepted.resources_list_changed == Some(true) {
                        subscription.sink().notify_resource_list_changed().await.map_err(internal)?;
                    }
                }
                Change::Resource(uri) => {
                    if accepted.resource_subscriptions.as_ref().is_some_and(|uris| uris.contains(&uri)) {
                        subscription.sink().notify_resource_updated(uri).await.map_err(internal)?;
                    }
                }
            }
        }
    }
}

fn named() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

pub async fn main(args: &[&str]) {
    let server = server();
    if args[0] == "stdio" {
        server.serve(stdio()).await.expect("a client speaks").waiting().await.expect("the session ends");
        return;
    }
    let service: StreamableHttpService<Server, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(server.clone()), Default::default(), StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{}", args[1])).await.expect("the port is free");
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await.expect("it serves");
}
